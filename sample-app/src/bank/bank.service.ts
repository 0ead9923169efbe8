import { Inject, Injectable } from '@nestjs/common';
import { CurrentLock, WithLock, type Lock } from 'nest-redis-lock';
import { appConfig, type AppConfig } from '../config/app.config.js';
import { BankError } from './bank.errors.js';

export interface Payout {
  readonly iban: string;
  readonly amount: number;
}

/** How long the bank may take, in ms. */
const PATIENCE_MS = 5_000;

/** Sends payouts to a bank that takes three requests at a time from us, over all our nodes, and refuses more. */
@Injectable()
export class BankService {
  constructor(@Inject(appConfig.KEY) private readonly config: AppConfig) {}

  /** Gives up when the lock is lost: another node takes our place at the bank then. */
  @WithLock('bank', { permits: 3 })
  send(payout: Payout, @CurrentLock() lock?: Lock): Promise<string> {
    return this.post(payout, AbortSignal.any([lock!.signal, AbortSignal.timeout(PATIENCE_MS)]));
  }

  /** Does the same, however many are at the bank. */
  sendUnsafe(payout: Payout): Promise<string> {
    return this.post(payout, AbortSignal.timeout(PATIENCE_MS));
  }

  /**
   * @returns the reference of the bank
   * @throws BankError
   */
  private async post(payout: Payout, signal: AbortSignal): Promise<string> {
    const { bankUrl } = this.config;
    if (!bankUrl) throw new BankError('BANK_URL is not set');
    try {
      const response = await fetch(`${bankUrl}/payouts`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(payout),
        signal,
      });
      if (!response.ok) throw new BankError(`it answered ${response.status}`);
      const { reference } = (await response.json()) as { reference: string };
      return reference;
    } catch (error) {
      if (error instanceof BankError) throw error;
      throw new BankError(signal.aborted ? String((signal.reason as Error).message) : 'it can not be reached', {
        cause: error,
      });
    }
  }
}
