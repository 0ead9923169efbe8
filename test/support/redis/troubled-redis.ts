import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from '../free-port.mjs';
import { startRedis, type RedisServer } from './redis-server.js';

export const USER = 'locks';
export const PASSWORD = 'S3cret-right';

/** Options of a server that has a user with all rights. */
const WITH_USER = ['--user', USER, 'on', `>${PASSWORD}`, '~*', '&*', '+@all'];

/** Where a server is, for the user. */
export function urlOf(port: number, { user = USER, password = PASSWORD, protocol = 'redis' } = {}): string {
  return `${protocol}://${user}:${password}@127.0.0.1:${port}`;
}

/**
 * A Redis with a user, and with a certificate that nobody trusts; and others beside it. Their folder is gone with them.
 */
export class TroubledRedis {
  readonly folder = mkdtempSync(join(tmpdir(), 'nest-redis-lock-'));
  server!: RedisServer;
  tlsPort!: number;
  /** For commands of the test itself. */
  redis!: Redis;
  readonly #others: RedisServer[] = [];

  async start(): Promise<void> {
    const [key, certificate] = [join(this.folder, 'key.pem'), join(this.folder, 'certificate.pem')];
    const request = [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-days',
      '2',
      '-subj',
      '/CN=127.0.0.1',
    ];
    execFileSync('openssl', [...request, '-keyout', key, '-out', certificate], { stdio: 'ignore' });
    this.tlsPort = await freePort();
    const tls = [
      '--tls-port',
      String(this.tlsPort),
      '--tls-key-file',
      key,
      '--tls-cert-file',
      certificate,
      '--tls-ca-cert-file',
      certificate,
      '--tls-auth-clients',
      'no',
    ];
    this.server = await startRedis(...WITH_USER, ...tls);
    this.redis = new Redis(this.server.url, { retryStrategy: () => 20, maxRetriesPerRequest: null }).on(
      'error',
      () => undefined,
    );
  }

  /** Starts one more, with other options. */
  async another(...options: string[]): Promise<RedisServer> {
    const server = await startRedis(...WITH_USER, '--dir', this.folder, ...options);
    this.#others.push(server);
    return server;
  }

  /** What the user may do from now on, beside or without what everybody may. */
  async allow(...rights: string[]): Promise<void> {
    await this.redis.acl('SETUSER', USER, ...rights);
  }

  async stop(): Promise<void> {
    this.redis.disconnect();
    await Promise.all([this.server, ...this.#others].map((server) => server.stop()));
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 });
  }
}
