import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type CanActivate, type ExecutionContext, type INestApplication, UnauthorizedException } from '@nestjs/common';
import { Redis } from 'ioredis';
import type { Page } from 'playwright-core';
import { LockService, RedisLockModule, type Lock } from 'nest-redis-lock';
import { PLATFORMS } from '../nest/http-app.js';
import { withBrowser, type OpenPage } from '../support/browser/with-browser.js';
import { aborted } from '../support/deferred.js';
import { TestChild } from '../support/processes/child-process.js';
import { startRedis, type RedisServer } from '../support/redis/redis-server.js';
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
/** Five times as quick as in an app. */
const TIMES = { everyMs: 200, streamMs: 3_000 };

describe('The lock page in Chromium, in a real app on Redis', () => {
  let open: OpenPage;
  withBrowser((given) => (open = given));
  let server: RedisServer;
  beforeAll(async () => void (server = await startRedis()));
  afterAll(() => server.stop());

  describe.each(PLATFORMS)('on %s', (platform, adapter) => {
    let app: INestApplication;
    let locks: LockService;
    let address: string;
    beforeAll(async () => {
      app = await startPageApp({
        adapter,
        page: { guards: [OperatorGuard], actions: { guards: [AdminGuard] } },
        times: TIMES,
        assets: builtPageAssets(),
        metadata: { imports: [RedisLockModule.forRoot({ connection: server.url, wait: '1m', shutdownGrace: 0 })] },
        setUp: (app) => app.setGlobalPrefix('ops'),
      });
      locks = app.get(LockService);
      address = `${await app.getUrl()}/ops/locks`;
    });
    afterAll(() => app.close());
    beforeEach(() => void (signedIn = true));

    /** Opens the page at this place, as this user. */
    const openAt = (hash = '', user = 'operator') =>
      open(`${address}#/${hash}`, { extraHTTPHeaders: { 'x-user': user } });
    const shows = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor(PATIENCE);
    const rowsOf = (page: Page, table: string) =>
      page.getByRole('table', { name: table }).locator('tbody').getByRole('row');

    it('a holder appears, the queue moves, and the history tells it', async () => {
      const page = await openAt('key/account%3A42');
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

    describe('Force-unlock', () => {
      async function takeAway(page: Page, key: string) {
        await page.getByRole('button', { name: 'Take it away…' }).click(PATIENCE);
        await page.getByLabel('Type the key').fill(key);
        await page.getByLabel('Reason').fill('its worker hangs');
        await page.getByRole('button', { name: 'Take it away', exact: true }).click();
      }

      it('takes the lock away for those who may; the holder hears by whom and why, and so does who looks later', async () => {
        const page = await openAt('key/taken%3A1', 'admin');
        const lock = await locks.lock('taken:1');
        await takeAway(page, 'taken:1');
        await shows(page, 'taken:1 was taken away.');
        await aborted(lock.signal);
        expect(lock.signal.reason).toMatchObject({
          forced: { by: 'admin@example.com', reason: 'its worker hangs' },
        });
        const later = await openAt('key/taken%3A1');
        await shows(later, 'Nobody holds this key now.');
        for (const type of ['forced', 'lost']) {
          const row = rowsOf(later, 'History').filter({ hasText: type });
          await row.filter({ hasText: 'by admin@example.com: its worker hangs' }).first().waitFor(PATIENCE);
        }
      });

      it('refuses those who may not, and says so', async () => {
        const page = await openAt('key/kept%3A1');
        const lock = await locks.lock('kept:1');
        await takeAway(page, 'kept:1');
        await page
          .getByRole('alert')
          .getByText(/Forbidden/)
          .waitFor(PATIENCE);
        expect(lock.isHeld).toBe(true);
        await lock.unlock();
      });
    });

    it('says that the session has ended as soon as the guard refuses, also when nobody touches the page', async () => {
      const page = await openAt();
      await shows(page, /^Live, /);
      signedIn = false;
      await shows(page, /your session has ended/);
    });

    // What follows is the same on all platforms.
    if (platform === 'Express') {
      it('a lost lock is seen, with its reason', async () => {
        const page = await openAt('lost');
        const lock = await locks.lock('lost:1', { label: 'Accounts.withdraw' });
        await locks.forceUnlock('lost:1', { by: 'the night shift', reason: 'it hung' });
        await aborted(lock.signal);
        const row = rowsOf(page, 'Lost in the last hour').filter({ hasText: 'lost:1' });
        await row.filter({ hasText: 'by the night shift: it hung' }).waitFor(PATIENCE);
        await page.getByRole('link', { name: /^Lost \d/ }).waitFor();
      });

      it('the filter finds a lock, and the page answers for it', async () => {
        const page = await openAt();
        const held: Lock[] = [];
        for (const key of ['account:43', 'order:7']) held.push(await locks.lock(key, { label: `work on ${key}` }));
        await rowsOf(page, 'Held').nth(1).waitFor(PATIENCE);
        await page.getByLabel('Filter').fill('ON ORDER');
        await shows(page, /Held by\s*work on order:7/);
        expect(await rowsOf(page, 'Held').count()).toBe(1);
        await page.getByLabel('Filter').fill('nothing of that kind');
        await shows(page, 'No process holds a lock that has “nothing of that kind” in it.');
        await page.getByLabel('Filter').fill('');
        await rowsOf(page, 'Held').nth(1).waitFor(PATIENCE);
        await Promise.all(held.map((lock) => lock.unlock()));
      });

      it('a key that nobody claims is found by its whole name', async () => {
        const store = new Redis(server.url);
        await store.set('lock:Dead:1', 'another tool', 'PX', 60_000);
        store.disconnect();
        const page = await openAt('?filter=Dead%3A1');
        await page.getByRole('link', { name: 'Ask the lock server' }).click(PATIENCE);
        await shows(page, /Held by\s*another tool/);
      });

      it('a stopped process is silent, and its lock is not free; when it goes on, it answers again', async () => {
        const child = new TestChild('hold.mjs', server.url, 'account:46', 30_000, '{"label":"nightly"}');
        try {
          await child.message();
          const page = await openAt('key/account%3A46');
          await shows(page, /Held by\s*nightly\s*on .+:\d+/);
          await shows(page, /is alive and answers/);
          const list = await openAt();
          const row = rowsOf(list, 'Held').filter({ hasText: 'account:46' });
          await row.waitFor(PATIENCE);

          await child.stop();
          await row.filter({ hasText: 'its process does not answer' }).waitFor(PATIENCE);
          await shows(page, /Held by\s*nightly/);
          await shows(page, /Its process did not answer: it is stalled or gone/);
          await shows(page, /:\d+ did not answer in time/);
          await list.getByRole('link', { name: /^Processes/ }).click();
          const stopped = rowsOf(list, 'Processes').filter({ hasText: String(child.process.pid) });
          await stopped.filter({ hasText: /has not answered for\s*\d+ s/ }).waitFor(PATIENCE);

          child.goOn();
          await shows(page, /is alive and answers/);
          await stopped.filter({ hasNotText: 'has not answered' }).waitFor(PATIENCE);
        } finally {
          await child.kill();
        }
      });

      it('two calls that wait for each other are a deadlock, until the first gives up', async () => {
        const page = await openAt('waits');
        const nested = (outer: string, inner: string) =>
          locks.withLock(outer, () => locks.withLock(inner, () => 'both', { wait: '2s' }), { label: outer });
        const both = Promise.allSettled([nested('k:1', 'k:2'), nested('k:2', 'k:1')]);
        await page.getByRole('heading', { name: 'A deadlock' }).waitFor(PATIENCE);
        await page.getByRole('img', { name: '2 calls, 1 deadlock' }).waitFor(PATIENCE);
        await both;
        await shows(page, /so there is no deadlock/);
      });

      it('keys with markup in them, and the longest keys, do no harm', async () => {
        const page = await openAt('', 'admin');
        const keys = ['<img src=x onerror=alert(1)><script>alert(2)</script>', 'long'.repeat(256)];
        for (const key of keys) {
          const lock = await locks.lock(key);
          await page.getByRole('link', { name: /^Locks \d/ }).click();
          await page.getByRole('link', { name: key }).click(PATIENCE);
          await shows(page, /Held by/);
          expect(await page.locator('main img, main script').count()).toBe(0);
          await lock.unlock();
        }
      });

      it('tells when Redis stops, goes on without it, and sees it come back', async () => {
        const page = await openAt();
        const lock = await locks.lock('account:44');
        await shows(page, 'account:44');
        await server.kill();
        await shows(page, /The lock server is down/);
        await shows(page, /^Live, /);
        await server.restart();
        await page.getByText(/The lock server is down\s*for/).waitFor({ state: 'detached', timeout: 20_000 });
        await locks.lock('account:45');
        await shows(page, 'account:45');
        await lock.unlock();
      }, 60_000);
    }

    it('says that the app is away when it has closed', async () => {
      const page = await openAt();
      await shows(page, /^Live, /);
      await app.close();
      await shows(page, /The app does not answer/);
    });
  });
});
