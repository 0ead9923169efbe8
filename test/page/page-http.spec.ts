import { EventEmitter, once } from 'node:events';
import { get as getByNode, type IncomingMessage } from 'node:http';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type CanActivate,
  type ExecutionContext,
  type INestApplication,
  Injectable,
  Module,
  type NestInterceptor,
  UnauthorizedException,
  VersioningType,
} from '@nestjs/common';
import { LockService, type LockEvent } from 'nest-redis-lock';
import { map } from 'rxjs';
import type { HeldRow, PageSnapshot, UnlockRequest } from '../../lib/page/page-snapshot.js';
import { PLATFORMS } from '../nest/http-app.js';
import { until } from '../support/deferred.js';
import { events } from './support/event-source.js';
import { startPageApp } from './support/page-app.js';

const HEADERS = { 'content-type': 'application/json', 'x-lock-page': 'unlock' };

@Injectable()
class Users {
  named(name: string | undefined): { readonly email: string } | undefined {
    return name === undefined ? undefined : { email: `${name}@example.com` };
  }
}

@Module({ providers: [Users], exports: [Users] })
class UsersModule {}

/** As a guard of an app: it asks a provider of another module who it is, and sets the user of the request. */
@Injectable()
class OperatorGuard implements CanActivate {
  constructor(private readonly users: Users) {}

  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<{ headers: Record<string, string>; user?: unknown }>();
    const user = this.users.named(request.headers['x-user']);
    if (!user) throw new UnauthorizedException();
    request.user = user;
    return true;
  }
}

class AdminGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    return context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers['x-user'] === 'admin';
  }
}

/** A guard that decides when the client has left. */
class SlowGuard implements CanActivate {
  static readonly news = new EventEmitter();

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const { socket, headers } = context.switchToHttp().getRequest<IncomingMessage>();
    if (!headers['x-leaves']) return true;
    SlowGuard.news.emit('asked');
    await once(socket, 'close');
    return true;
  }
}

describe.each(PLATFORMS)('The page on %s', (platform, adapter) => {
  const apps: INestApplication[] = [];

  afterEach(() => Promise.all(apps.splice(0).map((app) => app.close())));

  async function start(options: Omit<Parameters<typeof startPageApp>[0], 'adapter'> = {}) {
    const app = await startPageApp({ adapter, ...options });
    apps.push(app);
    const url = await app.getUrl();
    const get = (path: string, init?: RequestInit) => fetch(url + path, init);
    const statusOf = async (path: string, init?: RequestInit) => {
      const response = await get(path, init);
      // A connection whose response is not read holds up the end of the app.
      await response.text();
      return response.status;
    };
    return { app, url, locks: app.get(LockService), get, statusOf };
  }

  const guarded = { guards: [OperatorGuard], imports: [UsersModule] };

  it('the page is there with its files, behind the prefix of the app and beside its versions', async () => {
    const { get, statusOf } = await start({
      page: { path: 'ops/locks' },
      setUp: (app) => app.setGlobalPrefix('api').enableVersioning({ type: VersioningType.URI, defaultVersion: '2' }),
    });
    const page = await get('/api/ops/locks');
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(await page.text()).toBe('<link href="./locks/assets/page.css"><script src="./locks/assets/page.js">');
    const script = await get('/api/ops/locks/assets/page.js');
    expect(script.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    expect(await script.text()).toBe('export {};');
    expect(await statusOf('/api/ops/locks/snapshot')).toBe(200);
    expect(await statusOf('/api/v2/ops/locks')).toBe(404);
  });

  it('the page finds its files also where the app is there with a slash at its end', async () => {
    const { get } = await start();
    expect(await (await get('/locks')).text()).toContain('href="./locks/assets/page.css"');
    const withSlash = await get('/locks/');
    // Fastify does not know it, unless the app sets `ignoreTrailingSlash`.
    expect(withSlash.status).toBe(platform === 'Express' ? 200 : 404);
    const text = await withSlash.text();
    if (platform === 'Express') expect(text).toContain('href="./assets/page.css"');
  });

  it('the browser asks for a file that it knows each time, and gets it only once', async () => {
    const { get } = await start();
    const first = await get('/locks/assets/page.js');
    expect(first.headers.get('cache-control')).toBe('private, no-cache');
    const again = await get('/locks/assets/page.js', { headers: { 'if-none-match': first.headers.get('etag')! } });
    expect(again.status).toBe(304);
    expect(await again.text()).toBe('');
  });

  it('no other file can be had', async () => {
    const { statusOf } = await start();
    const names = ['secret.pem', 'index.html', '..%2Findex.html', '%2e%2e%2fpackage.json', '__proto__', 'none.js', ''];
    for (const name of names) expect(await statusOf(`/locks/assets/${name}`)).toBe(404);
  });

  it('the browser loads nothing from elsewhere, and keeps no data', async () => {
    const { get } = await start();
    for (const path of ['/locks', '/locks/assets/page.js', '/locks/snapshot', '/locks/events']) {
      const response = await get(path, { signal: AbortSignal.timeout(5_000) });
      const { headers } = response;
      expect(headers.get('content-security-policy')).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; " +
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
          "require-trusted-types-for 'script'; trusted-types 'none'",
      );
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
      expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
      if (!path.includes('assets')) expect(headers.get('cache-control')).toContain('no-store');
      await response.body!.cancel();
    }
  });

  const PATHS = ['/locks', '/locks/assets/page.js', '/locks/snapshot', '/locks/events'];

  it('the guards of the page guard all of it, and get what they inject', async () => {
    const { get, statusOf } = await start({ page: { ...guarded, actions: true } });
    expect(await statusOf('/locks/unlock', { method: 'POST', headers: HEADERS, body: '{}' })).toBe(401);
    for (const path of PATHS) {
      expect(await statusOf(path)).toBe(401);
      const allowed = await get(path, { headers: { 'x-user': 'operator' } });
      expect(allowed.status).toBe(200);
      await allowed.body!.cancel();
    }
  });

  it('a guard that refuses everybody, and a global guard, refuse all of the page', async () => {
    const refuses: CanActivate = { canActivate: () => false };
    const apps = [
      await start({ page: { guards: [refuses], actions: true } }),
      await start({ page: { actions: true }, setUp: (app) => app.useGlobalGuards(refuses) }),
    ];
    for (const { statusOf } of apps) {
      for (const path of PATHS) expect(await statusOf(path)).toBe(403);
      expect(await statusOf('/locks/unlock', { method: 'POST', headers: HEADERS, body: '{}' })).toBe(403);
    }
  });

  it('interceptors of the app that wrap or end what handlers return leave the page alone', async () => {
    const wraps: NestInterceptor = { intercept: (_context, next) => next.handle().pipe(map((data) => ({ data }))) };
    const { get } = await start({ setUp: (app) => app.useGlobalInterceptors(wraps) });
    expect(await (await get('/locks')).text()).toMatch(/^<link/);
    expect(await (await get('/locks/snapshot')).json()).toMatchObject({ module: 'default' });
    const { value } = await events(await get('/locks/events')).next();
    expect(value).toMatchObject({ type: 'snapshot', data: expect.stringContaining('"module":"default"') });
  });

  it('the stream sends a snapshot at once, and another one time after time', async () => {
    const { get, locks } = await start({ times: { everyMs: 200 } });
    await locks.lock('account:42');
    const stream = events(await get('/locks/events'));
    const snapshots: PageSnapshot[] = [];
    for await (const { data } of stream) if (snapshots.push(JSON.parse(data) as PageSnapshot) === 2) break;
    const [first, second] = snapshots;
    expect(first!.held.items).toMatchObject([
      { key: 'account:42', host: expect.any(String), fence: expect.any(Number) },
    ]);
    expect(second!.at - first!.at).toBeGreaterThan(150);
  });

  it('a stream ends after its time, so that the guards decide again: whose session is over sees no more', async () => {
    const sessions = new Set(['ada']);
    const guard: CanActivate = {
      canActivate: (context) =>
        sessions.has(context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers['x-session']!),
    };
    const { get, statusOf } = await start({ page: { guards: [guard] }, times: { streamMs: 100 } });
    const headers = { 'x-session': 'ada' };
    const sent: string[] = [];
    for await (const { type } of events(await get('/locks/events', { headers }))) sent.push(type);
    expect(sent).toEqual(['snapshot', 'again']);
    const again = events(await get('/locks/events', { headers }));
    expect((await again.next()).value!.type).toBe('snapshot');
    sessions.delete('ada');
    expect((await again.next()).value!.type).toBe('again');
    expect((await again.next()).done).toBe(true);
    expect(await statusOf('/locks/events', { headers })).toBe(403);
  });

  it('the streams end when the app shuts down, and do not hold it up', async () => {
    const { app, get } = await start();
    const stream = events(await get('/locks/events'));
    await stream.next();
    apps.length = 0;
    await app.close();
    expect((await stream.next()).done).toBe(true);
  });

  it('a bad request says what is wrong with it', async () => {
    const { get, statusOf } = await start();
    const long = await get(`/locks/snapshot?filter=${'x'.repeat(201)}`);
    expect(long.status).toBe(400);
    expect(await long.json()).toMatchObject({ message: '"filter" has more than 200 characters.' });
    expect(await statusOf(`/locks/snapshot?key=${'x'.repeat(1_025)}`)).toBe(400);
    expect(await statusOf('/locks/snapshot?filter[]=a&key=%00')).toBe(200);
  });

  it('only so many different views are open at a time', async () => {
    const { get, statusOf } = await start({ times: { everyMs: 50 } });
    const streams = await Promise.all(Array.from({ length: 8 }, (_, at) => get(`/locks/events?filter=${at}`)));
    expect(streams.map(({ status }) => status)).toEqual(Array(8).fill(200));
    expect(await statusOf('/locks/snapshot?filter=one-more')).toBe(429);
    expect(await statusOf('/locks/events?filter=one-more')).toBe(429);
    expect(await statusOf('/locks/snapshot?filter=7')).toBe(200);
    for (const { body } of streams) await body!.cancel();
  });

  it('only so many streams are open at a time; others poll', async () => {
    const { get, statusOf } = await start();
    const streams = await Promise.all(Array.from({ length: 100 }, () => get('/locks/events')));
    expect(streams.map(({ status }) => status)).toEqual(Array(100).fill(200));
    expect(await statusOf('/locks/events')).toBe(429);
    expect(await statusOf('/locks/snapshot')).toBe(200);
    await Promise.all(streams.map(({ body }) => body!.cancel()));
    await until(async () => (await statusOf('/locks/events', { method: 'HEAD' })) === 200);
  });

  it('a client that leaves while the guards decide is not shown anything for ever', async () => {
    const { url, statusOf } = await start({ page: { guards: [SlowGuard] } });
    for (let at = 0; at < 8; at++) {
      const asked = once(SlowGuard.news, 'asked');
      const request = getByNode(`${url}/locks/events?filter=${at}`, { headers: { 'x-leaves': 'yes' } });
      const failed = new Promise((resolve) => request.once('error', resolve));
      await asked;
      request.destroy();
      await failed;
    }
    expect(await statusOf('/locks/snapshot?filter=one-more')).toBe(200);
  });

  it('other sites read nothing, though the app allows other origins', async () => {
    const { statusOf } = await start({ setUp: (app) => app.enableCors({ origin: true, credentials: true }) });
    for (const site of ['cross-site', 'same-site']) {
      const headers = { origin: 'https://evil.example', 'sec-fetch-site': site };
      expect(await statusOf('/locks/snapshot', { headers })).toBe(403);
      expect(await statusOf('/locks/events', { headers })).toBe(403);
    }
    // Without TLS, a browser sends no "Sec-Fetch-Site".
    const withoutTls: Record<string, string>[] = [{}, { 'x-forwarded-host': 'evil.example' }];
    for (const more of withoutTls) {
      const headers = { origin: 'http://evil.example', ...more };
      expect(await statusOf('/locks/snapshot', { headers })).toBe(403);
      expect(await statusOf('/locks/events', { headers })).toBe(403);
    }
  });

  describe('asked to unlock a key', () => {
    const unlocking = { page: { ...guarded, actions: true } };
    const asAdmin = { ...HEADERS, 'x-user': 'admin' };

    async function unlock(
      { url }: { readonly url: string },
      request: Partial<UnlockRequest>,
      headers: Record<string, string> = asAdmin,
    ) {
      const body = JSON.stringify({ reason: 'it hangs', typedKey: request.key, ...request });
      const response = await fetch(`${url}/locks/unlock`, { method: 'POST', headers, body });
      return { status: response.status, body: await response.json() };
    }

    it('the page unlocks it, and the loss and the audit event say who did it and why', async () => {
      const app = await start(unlocking);
      const told: LockEvent[] = [];
      app.locks.events.subscribe((event) => told.push(event));
      const lock = await app.locks.lock('account:42');
      const { status, body } = await unlock(app, { key: 'account:42', fence: lock.fence });
      expect({ status, body }).toEqual({ status: 200, body: { unlocked: true } });
      const audit = { by: 'admin@example.com', reason: 'it hangs' };
      expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST', forced: audit });
      expect(told.find(({ type }) => type === 'forced')).toMatchObject({ keys: ['account:42'], ...audit });
    });

    it('the page takes it from the holder that the user has seen, and from no other', async () => {
      const app = await start(unlocking);
      const seen = await app.locks.lock('account:42');
      await seen.unlock();
      expect(await unlock(app, { key: 'account:42', fence: seen.fence })).toMatchObject({ body: { unlocked: false } });
      const later = await app.locks.lock('account:42');
      expect(await unlock(app, { key: 'account:42', fence: seen.fence })).toMatchObject({ status: 409 });
      expect(await unlock(app, { key: 'account:42', fence: null, tokenHash: 'x' })).toMatchObject({ status: 409 });
      expect(later.isHeld).toBe(true);
    });

    it('the page takes a key without a fence from the holder that the user has seen, too', async () => {
      const app = await start(unlocking);
      const key = 'account:42';
      const headers = { ...asAdmin, 'x-lock-page-view': new URLSearchParams({ key }).toString() };
      const kept = async (isNew: (row: HeldRow) => boolean) => {
        await app.locks.withLock(key, () => undefined, { atLeast: '1m' });
        let row: HeldRow | undefined;
        await until(async () => {
          const snapshot = (await (await app.get('/locks/snapshot', { headers })).json()) as PageSnapshot;
          row = snapshot.key?.holders.items[0];
          return row !== undefined && isNew(row);
        });
        return row!;
      };
      const seen = await kept(() => true);
      expect(seen).toMatchObject({ isKept: true, fence: null, tokenHash: expect.any(String) });
      await app.locks.forceUnlock(key);
      const { tokenHash } = await kept((row) => row.tokenHash !== seen.tokenHash);
      const ofSeen = { key, fence: null, tokenHash: seen.tokenHash };
      expect(await unlock(app, ofSeen)).toMatchObject({ status: 409 });
      expect(await unlock(app, { ...ofSeen, tokenHash })).toMatchObject({ body: { unlocked: true } });
    });

    it('the page refuses what a form or a script of another site can send', async () => {
      const app = await start({
        ...unlocking,
        setUp: (nest) => nest.enableCors({ origin: true, credentials: true }),
      });
      const lock = await app.locks.lock('account:42');
      const request = { key: 'account:42', fence: lock.fence };
      const refused: Record<string, string>[] = [
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'same-site' },
        { 'sec-fetch-site': 'none' },
        { origin: 'https://evil.example' },
        { origin: 'null' },
        { origin: 'http://evil.example', 'x-forwarded-host': 'evil.example' },
        { 'x-lock-page': '' },
        { 'content-type': 'text/plain' },
        { 'content-type': 'application/x-www-form-urlencoded' },
      ];
      for (const headers of refused) {
        const { status } = await unlock(app, request, { ...asAdmin, ...headers });
        expect([403, 415]).toContain(status);
      }
      expect(lock.isHeld).toBe(true);
      const behindProxy = await unlock(app, request, { ...asAdmin, origin: 'http://ops.example:8080' });
      expect(behindProxy.body).toMatchObject({
        message: expect.stringContaining(
          `comes from http://ops.example:8080, but was sent to ${new URL(app.url).host}.`,
        ),
      });
      const own: Record<string, string>[] = [
        { 'sec-fetch-site': 'same-origin', origin: 'https://proxy.example' },
        { origin: app.url },
      ];
      for (const headers of own)
        expect((await unlock(app, { ...request, typedKey: '' }, { ...asAdmin, ...headers })).status).toBe(400);
    });

    it('the page only shows, unless it has actions; and those who may not act only look', async () => {
      const [shows, acts] = [
        await start({ page: guarded }),
        await start({ page: { ...guarded, actions: { guards: [AdminGuard] } } }),
      ];
      for (const [app, user] of [
        [shows, 'admin'],
        [acts, 'operator'],
      ] as const) {
        const lock = await app.locks.lock('account:42');
        const headers = { ...HEADERS, 'x-user': user };
        expect((await unlock(app, { key: 'account:42', fence: lock.fence }, headers)).status).toBe(403);
        expect(lock.isHeld).toBe(true);
      }
      const { status } = await unlock(acts, { key: 'account:41', fence: 1 });
      expect(status).toBe(200);
      expect(await (await shows.get('/locks/snapshot', { headers: asAdmin })).json()).toMatchObject({ actions: false });
      expect(await (await acts.get('/locks/snapshot', { headers: asAdmin })).json()).toMatchObject({ actions: true });
    });

    it('the page says what is wrong with a request', async () => {
      const app = await start(unlocking);
      const key = 'account:42';
      const wrong: [request: Partial<UnlockRequest>, says: RegExp][] = [
        [{}, /"key" is missing/],
        [{ key, typedKey: 'account:4' }, /type it exactly/],
        [{ key, fence: 'x' as never }, /"fence" must be/],
        [{ key, fence: null }, /"tokenHash" must be/],
        [{ key: 'x'.repeat(1e6), fence: 1 }, /request entity too large|too large/i],
        [{ key, fence: 1, reason: ' ' }, /"reason" must be/],
        [{ key, fence: 1, reason: 'x'.repeat(201) }, /"reason" must be/],
      ];
      for (const [request, says] of wrong) {
        const { status, body } = await unlock(app, request);
        expect([400, 413]).toContain(status);
        expect(body).toMatchObject({ message: expect.stringMatching(says) });
      }
    });
  });
});
