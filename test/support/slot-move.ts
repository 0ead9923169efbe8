import { slotOf } from '../../lib/redis/cluster/cluster-slot.js';
import type { ClusterNode, RedisCluster } from './redis-cluster.js';

/** The slot of a key moves from one master to another, as an operator lets it. Meanwhile both answer with ASK and TRYAGAIN, afterwards with MOVED. */
export class SlotMove {
  readonly #slot: number;
  readonly #from: ClusterNode;
  readonly #to: ClusterNode;
  readonly #others: readonly ClusterNode[];

  constructor({ masters }: RedisCluster, key: string, from: number, to: number) {
    this.#slot = slotOf(`lock:${key}`);
    [this.#from, this.#to] = [masters[from]!, masters[to]!];
    this.#others = masters.filter((_, index) => index !== from && index !== to);
  }

  async begin(): Promise<void> {
    await this.#to.redis.cluster('SETSLOT', this.#slot, 'IMPORTING', this.#from.id);
    await this.#from.redis.cluster('SETSLOT', this.#slot, 'MIGRATING', this.#to.id);
  }

  /** Takes over what Redis has under this name. */
  async take(name: string): Promise<void> {
    await this.#from.redis.call('MIGRATE', '127.0.0.1', this.#to.port, name, 0, 5000);
  }

  /** What is still where it was. */
  async rest(): Promise<string[]> {
    return (await this.#from.redis.cluster('GETKEYSINSLOT', this.#slot, 100)).map(String);
  }

  /** Takes over the rest, and tells all masters. */
  async finish(): Promise<void> {
    for (const name of await this.rest()) await this.take(name);
    for (const { redis } of [this.#to, this.#from, ...this.#others]) await redis.cluster('SETSLOT', this.#slot, 'NODE', this.#to.id);
  }
}
