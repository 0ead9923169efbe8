import { Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { HealthIndicatorService, type HealthIndicatorResult } from '@nestjs/terminus';
import { detailOf } from '../errors/lock.error.js';
import { LockOptionsError } from '../errors/lock-options.error.js';
import { shown } from '../errors/messages.js';
import { unknownOption } from '../errors/unknown-option.js';
import type { LockService } from '../service/lock.service.js';
import { lockServiceToken, moduleNameIn } from '../service/lock.tokens.js';

/** Says which locks to check. */
export interface LockHealthOptions {
  /** The `name` of the `RedisLockModule`. @default 'default' */
  readonly module?: string;
}

/**
 * Tells Terminus whether locks can be acquired. Add it to the `providers` of the module that imports `TerminusModule`.
 *
 * @example
 * ```ts
 * check() {
 *   return this.health.check([() => this.locks.isHealthy('locks')]);
 * }
 * ```
 */
@Injectable()
export class LockHealthIndicator {
  readonly #health: HealthIndicatorService;
  readonly #moduleRef: ModuleRef;

  constructor(health: HealthIndicatorService, moduleRef: ModuleRef) {
    this.#health = health;
    this.#moduleRef = moduleRef;
  }

  /**
   * Acquires a lock on its own key and releases it, and is up when that works. A Redis that replies but grants nothing,
   * because it is read-only, out of memory or forbids it, is down. For a quorum the result says how many nodes are up;
   * it is down when they are no majority. A Redis that grants locks but should not keep them, for example because it
   * evicts keys, is up, with `warnings`. Settles within `commandTimeout`; for a quorum, about 100 ms after a majority
   * is up.
   *
   * @throws LockOptionsError when there is no such module, or for an unknown option
   */
  async isHealthy<const Key extends string>(
    key: Key,
    options: LockHealthOptions = {},
  ): Promise<HealthIndicatorResult<Key>> {
    const { isUp, up, of, errors, problems } = await this.#locks(options).health();
    const indicator = this.#health.check(key);
    const facts: Record<string, unknown> = {
      ...(of > 1 && { nodes: { up, of } }),
      ...(problems.length > 0 && { warnings: problems }),
    };
    if (isUp) return indicator.up(facts);
    return indicator.down({ ...facts, message: [...new Set(errors.map(detailOf))].join(' ') });
  }

  #locks(options: LockHealthOptions): LockService {
    if (typeof options !== 'object' || options === null)
      throw new LockOptionsError(`isHealthy() takes an object such as { module: 'billing' }, not ${shown(options)}.`);
    const unknown = Object.keys(options).find((name) => name !== 'module');
    if (unknown !== undefined) throw unknownOption(unknown, ['module']);
    const name = moduleNameIn(options, 'module');
    try {
      return this.#moduleRef.get(lockServiceToken(name), { strict: false });
    } catch {
      throw new LockOptionsError(
        `There is no RedisLockModule of the name ${shown(name)} to tell the health of. Import it, with this "name".`,
      );
    }
  }
}
