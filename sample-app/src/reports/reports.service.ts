import { Injectable } from '@nestjs/common';
import { WithLock } from 'nest-redis-lock';
import type { Report } from './report.js';
import { ReportsRepository } from './reports.repository.js';

/** Makes a report once a minute at most, however many ask for it, on however many nodes. */
@Injectable()
export class ReportsService {
  constructor(private readonly reports: ReportsRepository) {}

  async get(): Promise<Report> {
    return (await this.cached()) ?? (await this.refreshed());
  }

  /** Together with other readers, but not while a report is made: then it waits for that. */
  @WithLock('report', { mode: 'read' })
  cached(): Promise<Report | undefined> {
    return this.reports.fresh();
  }

  /** One at a time. Those who have waited find the report that the first one has made. */
  @WithLock('report', { mode: 'write' })
  async refreshed(): Promise<Report> {
    return (await this.reports.fresh()) ?? (await this.reports.make());
  }

  @WithLock('report', { mode: 'write' })
  clear(): Promise<void> {
    return this.reports.clear();
  }

  /** Does the same without a lock: all who find no report make one. */
  async getUnsafe(): Promise<Report> {
    return (await this.reports.fresh()) ?? (await this.reports.make());
  }
}
