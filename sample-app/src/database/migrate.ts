import { Migrator } from 'kysely';
import { reason } from '../errors/reason.js';
import type { Database } from './database.js';
import * as accounts from './migrations/0001-accounts.js';
import * as fence from './migrations/0002-fence.js';
import * as shop from './migrations/0003-shop.js';

const migrations = { '0001-accounts': accounts, '0002-fence': fence, '0003-shop': shop };

/** Migrates the tables. Several processes may do so at once: Postgres lets in one at a time. */
export async function migrate(database: Database): Promise<void> {
  const migrator = new Migrator({ db: database, provider: { getMigrations: async () => migrations } });
  const { error } = await migrator.migrateToLatest();
  if (error instanceof Error) throw new Error(`The database cannot be used: ${reason(error)}`, { cause: error });
}
