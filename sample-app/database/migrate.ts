import { Migrator } from 'kysely';
import { reason, withoutPassword } from '../describe.js';
import { Database } from './database.js';
import * as accounts from './migrations/0001-accounts.js';
import * as fence from './migrations/0002-fence.js';

const migrations = { '0001-accounts': accounts, '0002-fence': fence };

/** Brings the tables up to date. Several processes may do it at once: Postgres lets in one at a time. */
export async function migrate(databaseUrl: string): Promise<void> {
  const database = new Database({ databaseUrl });
  const migrator = new Migrator({ db: database, provider: { getMigrations: async () => migrations } });
  try {
    const { error } = await migrator.migrateToLatest();
    if (error instanceof Error) throw error;
  } catch (error) {
    throw new Error(`The database ${withoutPassword(databaseUrl)} cannot be used: ${reason(error)}`, { cause: error });
  } finally {
    await database.destroy();
  }
}
