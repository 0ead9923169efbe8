import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { SharedPglite } from '../../sample-app/dev/processes/shared-pglite.js';
import { startBank, type SimulatedBank } from '../../sample-app/dev/simulated-bank.js';
import { FraudCheck } from '../../sample-app/src/accounts/fraud-check.js';
import { AppModule } from '../../sample-app/src/app.module.js';
import { setUpApp } from '../../sample-app/src/app.setup.js';
import { appConfig, type AppConfig } from '../../sample-app/src/config/app.config.js';
import { PageAssets } from '../../lib/page/http/page-assets.js';
import { builtPageAssets } from '../page/support/page-app.js';
import { startRedis, type RedisServer } from '../support/redis/redis-server.js';

/** A database, a Redis and a bank, with as many sample apps on them as a test asks for. */
export class SampleStack {
  readonly #apps: INestApplication[] = [];

  private constructor(
    readonly redis: RedisServer,
    readonly databaseUrl: string,
    readonly bank: SimulatedBank,
    /** Stops and starts as a server does: its address and its data stay. */
    readonly database: { stop(): Promise<void>; start(): Promise<void>; destroy(): Promise<void> },
  ) {}

  static async start(): Promise<SampleStack> {
    const database = new SharedPglite();
    const open = (port: number) =>
      new PGLiteSocketServer({ db: database, host: '127.0.0.1', port, maxConnections: 100 });
    let server = open(0);
    await server.start();
    const port = Number(server.getServerConn().split(':').at(-1));
    const databaseUrl = `postgres://postgres:postgres@${server.getServerConn()}/postgres`;
    return new SampleStack(await startRedis(), databaseUrl, await startBank(), {
      stop: () => server.stop(),
      start: () => (server = open(port)).start(),
      destroy: async () => {
        await server.stop();
        await database.close();
      },
    });
  }

  /** Starts an app and returns its URL. */
  async startApp(
    options: Partial<AppConfig> = {},
    fraudCheck: Pick<FraudCheck, 'approve'> = new FraudCheck({ fraudCheckMs: 2 }),
  ): Promise<string> {
    const module = await Test.createTestingModule({ imports: [AppModule] })
      .overrideProvider(appConfig.KEY)
      .useValue({
        databaseUrl: this.databaseUrl,
        redisUrl: this.redis.url,
        bankUrl: this.bank.url,
        demoUnsafe: false,
        shutdownGraceMs: 5_000,
        ...options,
      })
      .overrideProvider(PageAssets)
      .useValue(builtPageAssets())
      .overrideProvider(FraudCheck)
      .useValue(fraudCheck)
      .compile();
    const app = module.createNestApplication({ logger: false });
    this.#apps.push(app);
    setUpApp(app);
    await app.listen(0, '127.0.0.1');
    return app.getUrl();
  }

  /** Stops the app that was started last. */
  async stopApp(): Promise<void> {
    await this.#apps.pop()!.close();
  }

  async stop(): Promise<void> {
    for (const app of this.#apps) await app.close();
    await this.bank.stop();
    await this.redis.stop();
    await this.database.destroy();
  }
}
