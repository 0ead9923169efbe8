import { afterEach, beforeEach } from '@jest/globals';
import type { LockStore } from 'nest-redis-lock';
import type { Backing } from '../../store/backing.js';
import { lockService, type ClosableLockService } from './lock-services.js';

export interface TwoServices {
  readonly backing: Backing;
  readonly here: ClosableLockService;
  readonly there: ClosableLockService;
  /** One more service, as a third process would have it. */
  readonly another: () => ClosableLockService;
  /** One more store, without a service. */
  readonly store: () => LockStore;
}

/**
 * Gives each test a new backing with two services on it, as two processes would have them; ends everything after the
 * test.
 */
export function withTwoServices(start: () => Promise<Backing>, use: (services: TwoServices) => void): void {
  let backing: Backing;
  let services: ClosableLockService[];
  let stores: LockStore[];

  const store = (): LockStore => {
    const made = backing.store();
    stores.push(made);
    return made;
  };
  const another = (): ClosableLockService => {
    const made = lockService(backing.store(), { lease: 1000, wait: 5000, shutdownGrace: 0 });
    services.push(made);
    return made;
  };

  beforeEach(async () => {
    backing = await start();
    [services, stores] = [[], []];
    use({ backing, here: another(), there: another(), another, store });
  });

  afterEach(async () => {
    for (const service of services) await service.close();
    for (const store of stores) await store.close();
    await backing.stop();
  });
}
