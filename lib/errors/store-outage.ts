const outages = new WeakSet<object>();

/** Notes that the error is one of the whole store: it answers for no key, so every other call would meet the same. */
export function storeOutage<Outage extends Error>(error: Outage): Outage {
  outages.add(error);
  return error;
}

/** Whether it is known that the error is one of the whole store, and not of some keys only. */
export const isStoreOutage = (error: object): boolean => outages.has(error);
