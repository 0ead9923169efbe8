import { LockOptionsError } from '../../errors/lock-options.error.js';
import { lockNames } from '../../errors/messages.js';
import type { AcquireCommand } from '../lock-store.js';

/** Returns the error of a command that a quorum can't do; undefined if it can. */
export function unsupported({ keys, sharing, fair }: AcquireCommand): LockOptionsError | undefined {
  if (sharing === 'read')
    return notOnQuorum(
      `"mode" 'read'`,
      'independent nodes have no common queue, so readers that come and go could keep writers out for ever',
      keys,
    );
  if (sharing !== 'exclusive') {
    return notOnQuorum(
      '"permits"',
      'each node counts for itself, so more holders than there are permits could each have a majority ' +
        '(of 3 permits on 5 nodes, 5 holders)',
      keys,
    );
  }
  return fair
    ? notOnQuorum('"fair"', 'independent nodes have no common queue, so there is no order to keep', keys)
    : undefined;
}

/** Returns the error of something that a quorum can't do. */
export function notOnQuorum(what: string, why: string, keys: readonly string[] = []): LockOptionsError {
  const text = (of: string): string => `${what}${of} is not possible on a quorum: ${why}. Use one Redis for it.`;
  return new LockOptionsError(text(''), keys.length > 0 ? text(` of ${lockNames(keys)}`) : undefined);
}
