import { Injectable } from '@nestjs/common';
import { WithLock } from 'nest-redis-lock';

/** What the handlers of a spec lock, and the interceptors around them. */
export const KEY = 'order:7';

/** Locks the same key as the handler: it gets in at once inside the lock of its request, and never outside. */
@Injectable()
export class Audit {
  @WithLock(KEY, { wait: 0 })
  async note(what: string) {
    return `${what}, noted`;
  }
}
