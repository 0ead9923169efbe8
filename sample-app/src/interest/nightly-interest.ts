import { Injectable } from '@nestjs/common';
import { Cron } from '@nestjs/schedule';
import { WithLock } from 'nest-redis-lock';
import { InterestService } from './interest.service.js';

/**
 * Pays the interest each night, on one node. All nodes try at 03:00, and each minute until 03:10: if the node at work
 * dies, another one goes on where it stopped. A run that is complete pays nobody again.
 *
 * `atLeast` keeps out nodes whose clocks are up to 30 s late.
 */
@Injectable()
export class NightlyInterest {
  constructor(private readonly interest: InterestService) {}

  @Cron('0 0-10 3 * * *', { timeZone: 'UTC' })
  @WithLock('nightly-interest', { wait: 0, onTimeout: 'skip', atLeast: '30s' })
  async run(): Promise<void> {
    await this.interest.payAll(new Date().toISOString().slice(0, 10));
  }
}
