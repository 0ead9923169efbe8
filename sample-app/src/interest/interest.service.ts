import { Injectable } from '@nestjs/common';
import { CurrentLock, WithLock, type Lock } from 'nest-redis-lock';
import { InterestRepository } from './interest.repository.js';

@Injectable()
export class InterestService {
  constructor(private readonly interest: InterestRepository) {}

  /**
   * Pays the interest of a day to all accounts. One process does so; a call that finds it at work does nothing. When
   * that process dies in the middle, the next call goes on where it stopped.
   *
   * @returns how many accounts this call has paid; undefined when another process is at work
   */
  @WithLock('interest', { wait: 0, onTimeout: 'skip' })
  async payAll(day: string, @CurrentLock() run?: Lock): Promise<number | undefined> {
    let paid = 0;
    let last = await this.interest.begin(day, run!);
    for (;;) {
      const id = await this.interest.accountAfter(last);
      if (id === undefined) return paid;
      await this.pay(day, id, run!);
      last = id;
      paid++;
    }
  }

  /** The lock of the account, too: a withdrawal may be under way. */
  @WithLock('account:<id>')
  async pay(day: string, id: number, run: Lock, @CurrentLock() account?: Lock): Promise<void> {
    await this.interest.pay(day, id, { account: account!, run });
  }

  countPayments(id: number): Promise<number> {
    return this.interest.countPayments(id);
  }

  /** Does the same without a lock and without a memory: each process that runs it pays everybody. */
  async payAllUnsafe(day: string): Promise<number> {
    let paid = 0;
    let id = await this.interest.accountAfter(0);
    for (; id !== undefined; paid++) {
      await this.interest.payUnsafe(day, id);
      id = await this.interest.accountAfter(id);
    }
    return paid;
  }
}
