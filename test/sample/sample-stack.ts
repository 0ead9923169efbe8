import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { FraudCheck } from '../../sample-app/accounts/fraud-check.js';
import { AppModule } from '../../sample-app/app.module.js';
import type { AppOptions } from '../../sample-app/app.options.js';
import { setUpApp } from '../../sample-app/app.setup.js';
import { migrate } from '../../sample-app/database/migrate.js';
import { SharedPglite } from '../../sample-app/processes/shared-pglite.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';


/** A database and a Redis, with as many sample apps on them as a test asks for. */
export class SampleStack {
  readonly #apps: INestApplication[] = [];

  private constructor(
    readonly redis: RedisServer,
    readonly databaseUrl: string,
    readonly stopDatabase: () => Promise<void>,
  ) {}

  static async start(): Promise<SampleStack> {
    const database = new SharedPglite();
    const server = new PGLiteSocketServer({ db: database, host: '127.0.0.1', port: 0, maxConnections: 100 });
    await server.start();
    const databaseUrl = `postgres://postgres:postgres@${server.getServerConn()}/postgres`;
    await migrate(databaseUrl);
    return new SampleStack(await startRedis(), databaseUrl, async () => {
      await server.stop();
      await database.close();
    });
  }

  /** Starts an app and returns its URL. */
  async startApp(options: Partial<AppOptions> = {}, fraudCheck: Pick<FraudCheck, 'approve'> = new FraudCheck()): Promise<string> {
    const imports = [AppModule.register({ databaseUrl: this.databaseUrl, redisUrl: this.redis.url, ...options })];
    const module = await Test.createTestingModule({ imports }).overrideProvider(FraudCheck).useValue(fraudCheck).compile();
    const app = module.createNestApplication({ logger: false });
    this.#apps.push(app);
    setUpApp(app);
    await app.listen(0, '127.0.0.1');
    return app.getUrl();
  }

  async stop(): Promise<void> {
    for (const app of this.#apps) await app.close();
    await this.redis.stop();
    await this.stopDatabase();
  }
}
