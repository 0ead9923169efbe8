import { setTimeout as sleep } from 'node:timers/promises';
import { slotOf } from '../../../lib/redis/cluster/cluster-slot.js';
import { KeyNames } from '../../../lib/redis/wire/key-names.js';
import type { ClusterNode, RedisCluster } from './redis-cluster.js';

const NAMES = new KeyNames('lock:');

/** Who is inside longer than this stays long. */
const LOOKS_AGAIN_MS = 40;
const PATIENCE_MS = 8000;

/**
 * The slot of a key moves from one master to another, as an operator lets it. Meanwhile both answer with ASK and
 * TRYAGAIN, afterwards with MOVED.
 */
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

  /**
   * Resolves when somebody waits for this key, and at least so many who share it have been inside for some time; or
   * when that has not been so for long. Answers the name of the set that they are in.
   */
  async crowded(key: string, least: number): Promise<string> {
    const [holders, queue] = [NAMES.holders(key), NAMES.queue(key)];
    const inside = () => this.#from.redis.zrange(holders, '0', '-1');
    for (const giveUpAt = performance.now() + PATIENCE_MS; performance.now() < giveUpAt;) {
      const before = await inside();
      await sleep(LOOKS_AGAIN_MS);
      const [now, waiting] = [await inside(), await this.#from.redis.zcard(queue)];
      if (waiting > 0 && now.filter((token) => before.includes(token)).length >= least) break;
    }
    return holders;
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
    for (const { redis } of [this.#to, this.#from, ...this.#others])
      await redis.cluster('SETSLOT', this.#slot, 'NODE', this.#to.id);
  }
}
