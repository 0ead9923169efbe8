import { Inject, Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { appConfig, type AppConfig } from '../config/app.config.js';
import type { Tables } from './tables.js';

const logger = new Logger('Database');

@Injectable()
export class Database extends Kysely<Tables> implements OnApplicationShutdown {
  constructor(@Inject(appConfig.KEY) { databaseUrl }: AppConfig) {
    const pool = new pg.Pool({ connectionString: databaseUrl, max: 5, connectionTimeoutMillis: 5_000 });
    // The pool replaces a broken connection. But an 'error' event without a listener would end the process.
    const lost = (error: Error) => logger.warn(`Lost a connection: ${error.message}`);
    pool.on('connect', (client) => client.on('error', lost)).on('error', () => {});
    super({ dialect: new PostgresDialect({ pool }) });
  }

  // Not in an earlier hook: Nest calls this one after the requests that still use the database.
  async onApplicationShutdown(): Promise<void> {
    await this.destroy();
  }
}
