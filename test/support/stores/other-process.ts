import type { AcquireCommand } from 'nest-redis-lock';

/** What another process asks a store for, to take a key away from this one. */
export const ofAnotherProcess = (key: string) =>
  ({
    keys: [key],
    token: 'of another process',
    leaseMs: 60_000,
    sharing: 'exclusive',
    label: undefined,
    queue: false,
  }) satisfies AcquireCommand;
