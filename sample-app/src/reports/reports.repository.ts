import { Injectable } from '@nestjs/common';
import { sql, type Selectable } from 'kysely';
import { setTimeout } from 'node:timers/promises';
import { Database } from '../database/database.js';
import type { ReportsTable } from '../database/tables.js';
import type { Report } from './report.js';

@Injectable()
export class ReportsRepository {
  constructor(private readonly database: Database) {}

  /** Returns the latest report, if it was made less than a minute ago. */
  async fresh(): Promise<Report | undefined> {
    const row = await this.database
      .selectFrom('reports')
      .selectAll()
      .where('made_at', '>', sql<Date>`clock_timestamp() - interval '1 minute'`)
      .orderBy('id', 'desc')
      .limit(1)
      .executeTakeFirst();
    return row && toReport(row);
  }

  /** Makes a report. It takes long, as reports do. */
  async make(): Promise<Report> {
    await setTimeout(300);
    const row = await this.database
      .insertInto('reports')
      .columns(['accounts', 'total'])
      .expression((insert) =>
        insert
          .selectFrom('accounts')
          .select(({ fn }) => [fn.countAll().as('accounts'), fn.coalesce(fn.sum('balance'), sql`0`).as('total')]),
      )
      .returningAll()
      .executeTakeFirstOrThrow();
    return toReport(row);
  }

  async clear(): Promise<void> {
    await this.database.deleteFrom('reports').execute();
  }
}

function toReport({ id, accounts, total, made_at: madeAt }: Selectable<ReportsTable>): Report {
  return { id, accounts, total, madeAt };
}
