import type { LockService } from '../../service/lock.service.js';

/** The services that objects were given before, in other apps of this process that were open then. */
const earlier = new WeakMap<object, Map<symbol, LockService[]>>();

const isOpen = (service: unknown): service is LockService =>
  (service as Partial<LockService> | undefined)?.isEnding === false;

/** Notes that an object is given another service. Returns whether an app that is still open uses one that it had before. */
export function noteShared(instance: object, slot: symbol, had: unknown): boolean {
  const services = earlier.get(instance);
  const open = [...(services?.get(slot) ?? []), had].filter(isOpen);
  if (services || open.length > 0)
    earlier.set(instance, (services ?? new Map<symbol, LockService[]>()).set(slot, open));
  return open.length > 0;
}

/** The service of the latest other app that is still open. */
export function openServiceOf(instance: object, slot: symbol): LockService | undefined {
  return earlier.get(instance)?.get(slot)?.findLast(isOpen);
}
