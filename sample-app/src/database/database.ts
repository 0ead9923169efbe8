import { Inject, Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Kysely, PostgresDialect, type ColumnType, type Generated } from 'kysely';
import pg from 'pg';
import { appConfig, type AppConfig } from '../config/app.config.js';

export interface AccountsTable {
  id: Generated<number>;
  owner: string;
  balance: ColumnType<string, number, number>;
  /** The fence of the last lock under which the account was written, or read to be changed. */
  fence: ColumnType<string, never, string>;
}

interface Tables {
  accounts: AccountsTable;
}

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
