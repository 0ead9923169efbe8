import type { Attributes } from '@opentelemetry/api';
import type { LockRequest } from '../core/request/lock-request.js';
import { modeOf } from '../core/request/held-mode.js';

/** What the spans of a module have in common. */
export interface SpanSettings {
  /** The `name` of the module, unless it is the default one. */
  readonly module: string | undefined;
  /** Whether spans tell the keys. */
  readonly keys: boolean;
}

/** Returns what a span tells of a call: without its keys, which can name a customer, unless they are asked for. */
export function attributesOf({ label, site, sharing, keys }: LockRequest, settings: SpanSettings): Attributes {
  return {
    'nest_redis_lock.mode': modeOf(sharing),
    ...given('nest_redis_lock.label', label ?? site?.template),
    ...given('nest_redis_lock.template', site?.template),
    ...given('nest_redis_lock.module', settings.module),
    ...given('nest_redis_lock.keys', settings.keys ? [...keys] : undefined),
  };
}

/** An attribute, unless it is undefined. */
export const given = (name: string, value: string | string[] | undefined): Attributes =>
  value === undefined ? {} : { [name]: value };
