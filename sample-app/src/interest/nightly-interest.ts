import { Injectable } from '@nestjs/common';
import { Cron } from '@nestjs/schedule';
import { WithLock } from 'nest-redis-lock';
import { InterestService } from './interest.service.js';

/**
 * Pays the interest each night, on one node. All nodes try at 03:00, and each minute until 04:00: if the node at work
 * dies, another one goes on where it stopped, or the same one when it is back. A run that is complete pays nobody again.
 * If no node lives until 04:00, `POST /interest/runs` completes the day.
 *
 * `atLeast` keeps out nodes whose clocks are up to 30 s late.
 */
@Injectable()
export class NightlyInterest {
  constructor(private readonly interest: InterestService) {}

  @Cron('0 * 3 * * *', { timeZone: 'UTC' })
  @WithLock('nightly-interest', { wait: 0, onTimeout: 'skip', atLeast: '30s' })
  async run(): Promise<void> {
    await this.interest.payAll(new Date().toISOString().slice(0, 10));
  }
}
