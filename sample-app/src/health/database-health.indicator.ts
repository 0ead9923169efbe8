import { Injectable } from '@nestjs/common';
import { HealthIndicatorService, type HealthIndicatorResult } from '@nestjs/terminus';
import { sql } from 'kysely';
import { setTimeout } from 'node:timers/promises';
import { Database } from '../database/database.js';
import { reason } from '../errors/reason.js';

/** How long the database may take to answer, in ms. */
const PATIENCE_MS = 2_000;

@Injectable()
export class DatabaseHealthIndicator {
  constructor(
    private readonly database: Database,
    private readonly indicators: HealthIndicatorService,
  ) {}

  async isHealthy(name: string): Promise<HealthIndicatorResult> {
    const indicator = this.indicators.check(name);
    const late = new AbortController();
    try {
      const answer = sql`select 1`.execute(this.database);
      const answered = await Promise.race([answer, setTimeout(PATIENCE_MS, undefined, { signal: late.signal })]);
      return answered ? indicator.up() : indicator.down({ message: `no answer within ${PATIENCE_MS} ms` });
    } catch (error) {
      return indicator.down({ message: reason(error) });
    } finally {
      late.abort();
    }
  }
}
