import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { LOCAL_WAITERS_MARK } from '../../store/lock-store.js';

export { isKept } from '../../store/lock-store.js';

/** Characters of a host name that would make a token ambiguous. */
const NOT_HOST = /[^\w.-]/g;

/**
 * Makes owner tokens: `host:pid:random.sequence`, with a `+` at the end if others wait for the lock in this process. A
 * quorum adds the number of the try, `-1a`, before the `+`. The random part (96 bits, one per source) makes tokens
 * unguessable; host and pid show a person who reads the key with redis-cli which process holds it.
 */
export class TokenSource {
  /** `host:pid` of this process. */
  readonly holder = `${hostname().replace(NOT_HOST, '-').slice(0, 64)}:${process.pid}`;
  /** What all its tokens begin with, up to the last dot. */
  readonly name = `${this.holder}:${randomBytes(12).toString('base64url')}`;
  readonly #start = `${this.name}.`;
  #sequence = 0;

  next(withLocalWaiters: boolean): string {
    return this.#start + (++this.#sequence).toString(36) + (withLocalWaiters ? LOCAL_WAITERS_MARK : '');
  }
}

/** Reads the parts of a token of ours. They are undefined for a value that another tool wrote. */
export function partsOf(token: string): {
  readonly host: string | undefined;
  readonly pid: number | undefined;
  readonly instance: string | undefined;
} {
  const [, host, pid, instance] =
    /^([\w.-]+):(\d+):([\w-]{16})\.[0-9a-z]+(?:-[0-9a-z]+)?\+?(?: kept)?$/.exec(token) ?? [];
  return { host, pid: pid === undefined ? undefined : Number(pid), instance };
}

/** Reads the name of the source of a token of ours. */
export function sourceOf(token: string): string | undefined {
  return /^([\w.-]+:\d+:[\w-]{16})\./.exec(token)?.[1];
}

/** Reads `host:pid` of a token of ours. */
export function holderOf(token: string): string | undefined {
  const { host, pid } = partsOf(token);
  return host && `${host}:${pid}`;
}
