/** Whether an outage concerns a key. */
type Covers = (key: string) => boolean;

const outages = new WeakMap<object, Covers>();
const allKeys: Covers = () => true;

/**
 * Notes that the error is an outage: every call for a key that it covers would meet the same.
 *
 * @param covers by default all keys: the whole store is down
 */
export function storeOutage<Outage extends Error>(error: Outage, covers = allKeys): Outage {
  outages.set(error, covers);
  return error;
}

/** Tells which keys an outage covers. Undefined for an error that may be about some keys of its call only. */
export const coverageOf = (error: object): Covers | undefined => outages.get(error);
