import type { OwnedLock, StoreListener } from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';

/** Says that it hands its keys over for a short time at first, as the store on Redis does. */
export class ShortGrantStore extends MemoryLockStore {
  renewals = 0;
  acquires = 0;
  readonly #shortMs: number;

  constructor(shortMs: number) {
    super();
    this.#shortMs = shortMs;
  }

  override listen(listener: StoreListener): void {
    const granted: StoreListener['granted'] = (token, grant) =>
      listener.granted(token, { ...grant, leaseMs: this.#shortMs });
    super.listen({ ...listener, granted });
  }

  override acquire(...args: Parameters<MemoryLockStore['acquire']>): ReturnType<MemoryLockStore['acquire']> {
    this.acquires++;
    return super.acquire(...args);
  }

  override renew(renewals: readonly OwnedLock[]): ReturnType<MemoryLockStore['renew']> {
    this.renewals++;
    return super.renew(renewals);
  }

  async leaseLeft(key: string): Promise<number> {
    return (await this.inspect(key))?.holders[0]?.leaseLeftMs ?? 0;
  }
}
