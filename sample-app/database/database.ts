import { Inject, Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Kysely, PostgresDialect, type ColumnType, type Generated } from 'kysely';
import pg from 'pg';
import { APP_OPTIONS, type AppOptions } from '../app.options.js';

export interface AccountsTable {
  id: Generated<number>;
  owner: string;
  balance: ColumnType<string, number, number>;
}

interface Tables {
  accounts: AccountsTable;
}

@Injectable()
export class Database extends Kysely<Tables> implements OnApplicationShutdown {
  constructor(@Inject(APP_OPTIONS) { databaseUrl }: Pick<AppOptions, 'databaseUrl'>) {
    const pool = new pg.Pool({ connectionString: databaseUrl, max: 5, connectionTimeoutMillis: 5_000 });
    // An idle connection that breaks is replaced by the pool; without a listener it would end the process.
    pool.on('error', (error) => new Logger('Database').warn(`Lost a connection: ${error.message}`));
    super({ dialect: new PostgresDialect({ pool }) });
  }

  // Not earlier: Nest waits for the requests that still use it before it calls this.
  async onApplicationShutdown(): Promise<void> {
    await this.destroy();
  }
}
