import { LockNotWiredError } from '../../errors/lock-not-wired.error.js';
import { attachToRequest } from '../../http/http-request.js';
import type { LockService } from '../../service/lock.service.js';
import { lockServiceSlot } from '../../service/lock.tokens.js';

/** The services that earlier apps of this process gave to an object. */
const earlierServices = new WeakMap<object, Map<symbol, LockService[]>>();

const isOpen = (service: unknown): service is LockService =>
  (service as Partial<LockService> | undefined)?.isEnding === false;

/**
 * Finds the `LockService` that an object was given.
 *
 * @param method named in the error
 * @throws LockNotWiredError where it has none
 */
export function serviceOf(self: object, method: string, module: string): LockService {
  const slot = lockServiceSlot(module);
  const service = (self as Partial<Record<symbol, LockService>> | undefined)?.[slot];
  if (!service) throw attachToRequest(new LockNotWiredError(method, module));
  return service.isEnding ? (openServiceOf(self, slot) ?? service) : service;
}

/** Finds the service of the latest other app that is still open. */
function openServiceOf(instance: object, slot: symbol): LockService | undefined {
  return earlierServices.get(instance)?.get(slot)?.findLast(isOpen);
}

/**
 * Notes that an object is given another service.
 *
 * @returns whether an app that is still open uses one that the object had before
 */
export function noteEarlierService(instance: object, slot: symbol, earlier: unknown): boolean {
  const services = earlierServices.get(instance);
  const open = [...(services?.get(slot) ?? []), earlier].filter(isOpen);
  if (services || open.length > 0)
    earlierServices.set(instance, (services ?? new Map<symbol, LockService[]>()).set(slot, open));
  return open.length > 0;
}
