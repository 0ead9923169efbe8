import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type CanActivate, type ExecutionContext, type INestApplication, UnauthorizedException } from '@nestjs/common';
import type { Page } from 'playwright-core';
import { LockService, RedisLockModule, type Lock } from 'nest-redis-lock';
import type { LockPageModuleOptions } from 'nest-redis-lock/page';
import { PLATFORMS } from '../nest/http-app.js';
import { withBrowser, type OpenPage } from '../support/browser/with-browser.js';
import { aborted } from '../support/deferred.js';
import { withRedis } from '../support/redis/with-redis.js';
import type { RedisServer } from '../support/redis/redis-server.js';
import { builtPageAssets, startPageApp } from './support/page-app.js';

interface Request {
  readonly headers: Record<string, string>;
  user?: unknown;
}

/** Who the browser says it is. */
let signedIn = true;
class OperatorGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<Request>();
    if (!signedIn || request.headers['x-user'] === undefined) throw new UnauthorizedException();
    request.user = { email: `${request.headers['x-user']}@example.com` };
    return true;
  }
}

class AdminGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    return context.switchToHttp().getRequest<Request>().headers['x-user'] === 'admin';
  }
}

const PATIENCE = { timeout: 12_000 };
const ACTIONS = { actions: { guards: [AdminGuard] } };

describe.each(PLATFORMS)('The lock page in Chromium, in a real app on %s and Redis', (_platform, adapter) => {
  let open: OpenPage;
  withBrowser((given) => (open = given));
  let server: RedisServer;
  withRedis((one) => ({ server } = one));

  const apps: INestApplication[] = [];
  beforeEach(() => void (signedIn = true));
  afterEach(() => Promise.all(apps.splice(0).map((app) => app.close())));

  /** Starts an app with the page, and opens it as this user. */
  async function start(hash = '', page: LockPageModuleOptions = {}, user = 'operator') {
    const app = await startPageApp({
      adapter,
      page: { guards: [OperatorGuard], ...page },
      assets: builtPageAssets(),
      metadata: { imports: [RedisLockModule.forRoot({ connection: server.url, wait: '1m', shutdownGrace: 0 })] },
      setUp: (app) => app.setGlobalPrefix('ops'),
    });
    apps.push(app);
    const address = `${await app.getUrl()}/ops/locks`;
    return {
      locks: app.get(LockService),
      page: await open(`${address}#/${hash}`, { extraHTTPHeaders: { 'x-user': user } }),
    };
  }

  const shows = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor(PATIENCE);
  const rowsOf = (page: Page, table: string) =>
    page.getByRole('table', { name: table }).locator('tbody').getByRole('row');

  it('a holder appears, the queue moves, and the history tells it', async () => {
    const { locks, page } = await start('key/account%3A42');
    await shows(page, 'Nobody holds this key now.');
    const first = await locks.lock('account:42', { label: 'first', fair: true });
    await shows(page, /Held by\s*first\s*on .+:\d+\s*for\s*\d+ s\. Nobody waits for it\./);

    const second = locks.lock('account:42', { label: 'second', fair: true });
    await rowsOf(page, 'Queue').filter({ hasText: 'second' }).waitFor(PATIENCE);
    const third = locks.lock('account:42', { label: 'third', fair: true });
    await rowsOf(page, 'Queue').nth(1).filter({ hasText: 'third' }).waitFor(PATIENCE);
    await shows(page, /2 callers wait for it/);

    await first.unlock();
    await shows(page, /Held by\s*second/);
    await rowsOf(page, 'Queue').first().filter({ hasText: 'third' }).waitFor(PATIENCE);
    await (await second).unlock();
    await (await third).unlock();
    await shows(page, 'Nobody holds this key now.');
    await rowsOf(page, 'History').filter({ hasText: 'released' }).nth(2).waitFor(PATIENCE);
  });

  it('a lost lock is seen, with its reason', async () => {
    const { locks, page } = await start('lost');
    await shows(page, 'No lock was lost in the last hour.');
    const lock = await locks.lock('account:42', { label: 'Accounts.withdraw', lease: '600ms' });
    await locks.forceUnlock('account:42', { by: 'the night shift', reason: 'it hung' });
    await aborted(lock.signal);
    const row = rowsOf(page, 'Lost in the last hour').filter({ hasText: 'account:42' });
    await row.filter({ hasText: 'by the night shift: it hung' }).waitFor(PATIENCE);
    await page.getByRole('link', { name: 'Lost 1' }).waitFor();
  });

  it('the filter finds a lock, and the page answers for it', async () => {
    const { locks, page } = await start();
    const held: Lock[] = [];
    for (const key of ['account:42', 'order:7']) held.push(await locks.lock(key, { label: `work on ${key}` }));
    await rowsOf(page, 'Held').nth(1).waitFor(PATIENCE);
    await page.getByLabel('Filter').fill('ON ORDER');
    await shows(page, /Held by\s*work on order:7/);
    expect(await rowsOf(page, 'Held').count()).toBe(1);
    await page.getByLabel('Filter').fill('nothing of that kind');
    await shows(page, 'No lock that has “nothing of that kind” in it is held now.');
    await page.getByLabel('Filter').fill('');
    await rowsOf(page, 'Held').nth(1).waitFor(PATIENCE);
  });

  it('two calls that wait for each other are a deadlock, until the first gives up', async () => {
    const { locks, page } = await start('waits');
    const nested = (outer: string, inner: string) =>
      locks.withLock(outer, () => locks.withLock(inner, () => 'both', { wait: '4s' }), { label: `${outer}, ${inner}` });
    const both = Promise.allSettled([nested('k:1', 'k:2'), nested('k:2', 'k:1')]);
    await page.getByRole('heading', { name: 'A deadlock' }).waitFor(PATIENCE);
    await page.getByRole('img', { name: '2 calls, 1 deadlock' }).waitFor(PATIENCE);
    await both;
    await shows(page, /so there is no deadlock/);
  });

  it('keys with markup in them, and the longest keys, do no harm', async () => {
    const { locks, page } = await start('', ACTIONS, 'admin');
    const markup = await locks.lock('<img src=x onerror=alert(1)><script>alert(2)</script>');
    await page.getByRole('link', { name: '<img src=x onerror=alert(1)>' }).click();
    await shows(page, /Held by/);
    expect(await page.locator('main img, main script').count()).toBe(0);
    await markup.unlock();

    const longest = 'long'.repeat(256);
    await locks.lock(longest);
    await page.getByRole('link', { name: /^Locks \d/ }).click();
    await page.getByRole('link', { name: longest }).click(PATIENCE);
    await shows(page, /Held by/);
  });

  describe('Force-unlock', () => {
    async function takeAway(page: Page, key: string) {
      await page.getByRole('button', { name: 'Take it away…' }).click(PATIENCE);
      await page.getByLabel('Type the key').fill(key);
      await page.getByLabel('Reason').fill('its worker hangs');
      await page.getByRole('button', { name: 'Take it away', exact: true }).click();
    }

    it('takes the lock away for those who may, and the holder hears by whom and why', async () => {
      const { locks, page } = await start('key/account%3A42', ACTIONS, 'admin');
      const lock = await locks.lock('account:42');
      await takeAway(page, 'account:42');
      await shows(page, 'account:42 was taken away.');
      await aborted(lock.signal);
      expect(lock.signal.reason).toMatchObject({
        forced: { by: 'admin@example.com', reason: 'its worker hangs' },
      });
      await shows(page, 'Nobody holds this key now.');
      await rowsOf(page, 'History').filter({ hasText: 'admin@example.com' }).first().waitFor(PATIENCE);
    });

    it('refuses those who may not, and says so', async () => {
      const { locks, page } = await start('key/account%3A42', ACTIONS, 'operator');
      const lock = await locks.lock('account:42');
      await takeAway(page, 'account:42');
      await page
        .getByRole('alert')
        .getByText(/Forbidden/)
        .waitFor(PATIENCE);
      expect(lock.isHeld).toBe(true);
    });

    it('is not there without "actions"', async () => {
      const { locks, page } = await start('key/account%3A42', {}, 'admin');
      await locks.lock('account:42');
      await shows(page, /Held by/);
      expect(await page.getByRole('button', { name: /Take it away/ }).count()).toBe(0);
    });
  });

  it('tells when Redis stops, goes on without it, and sees it come back', async () => {
    const { locks, page } = await start();
    await locks.lock('account:42');
    await shows(page, 'account:42');
    await server.kill();
    await shows(page, /The lock server is down/);
    await shows(page, /^Live, /);
    await server.restart();
    await page.getByText(/The lock server is down\s*for/).waitFor({ state: 'detached', timeout: 20_000 });
    await locks.lock('account:43');
    await shows(page, 'account:43');
  }, 60_000);

  it('says that the session has ended when the guard refuses', async () => {
    const { page } = await start();
    await shows(page, /^Live, /);
    signedIn = false;
    await page.getByLabel('Filter').fill('x');
    await shows(page, /your session has ended/);
  });

  it('says that the app is away when it has closed', async () => {
    const { page } = await start();
    await shows(page, /^Live, /);
    await apps.pop()!.close();
    await shows(page, /The app does not answer/);
  });
});
