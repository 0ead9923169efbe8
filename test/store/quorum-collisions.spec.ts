import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { AcquireCommand, Busy, Cancellation, Granted } from 'nest-redis-lock';
import { ForwardingLockStore } from '../../lib/store/forwarding-lock.store.js';
import { untilDecided } from '../../lib/store/quorum/collisions.js';
import { QuorumLockStore } from '../../lib/store/quorum/quorum-lock.store.js';
import type { QuorumNode } from '../../lib/store/quorum/quorum-nodes.js';
import { until } from '../support/deferred.js';
import { MemoryNode } from '../support/stores/memory-node.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';

const NEAR_MS = 2;
const FAR_MS = 8;

/** A node that is so far away from its caller. */
class FarNode extends ForwardingLockStore<MemoryNode> implements QuorumNode {
  readonly isUnsubscribed = false;
  readonly #delayMs: number;

  constructor(node: MemoryNode, delayMs: number) {
    super(node);
    this.#delayMs = delayMs;
  }

  override async acquire(command: AcquireCommand): Promise<Granted | Busy> {
    await sleep(this.#delayMs);
    return this.inner.acquire(command);
  }

  override async cancel(command: Cancellation): Promise<void> {
    await sleep(this.#delayMs);
    return this.inner.cancel(command);
  }

  raise(fence: number): void {
    this.inner.raise(fence);
  }
}

describe('Callers that try once at the same moment, each of whom is nearest to another node', () => {
  let nodes: MemoryNode[];
  let services: ClosableLockService[];

  beforeEach(() => {
    nodes = [new MemoryNode(), new MemoryNode(), new MemoryNode()];
    services = nodes.map((nearest) =>
      lockService(new QuorumLockStore(nodes.map((node) => new FarNode(node, node === nearest ? NEAR_MS : FAR_MS))), {
        shutdownGrace: 0,
      }),
    );
  });

  afterEach(() => Promise.all(services.map((service) => service.close())));

  const tryAll = (callers: readonly ClosableLockService[], key: string) =>
    Promise.all(callers.map((service) => service.tryLock(key)));

  it('one of them gets the lock, and no other', async () => {
    for (let round = 0; round < 10; round++) {
      const locks = await tryAll(services, `job:${round}`);
      expect(locks.filter(Boolean)).toHaveLength(1);
    }
  });

  it('one of two gets the lock, and not the other, also while a node is down', async () => {
    nodes[2]!.isDown = true;
    for (let round = 0; round < 10; round++) {
      const locks = await tryAll(services.slice(0, 2), `job:${round}`);
      expect(locks.filter(Boolean)).toHaveLength(1);
    }
  });

  it('a caller is refused at its first try while another one holds the key', async () => {
    await services[0]!.lock('job');
    await until(async () => (await Promise.all(nodes.map((node) => node.isLocked('job')))).every(Boolean));
    const asked = nodes.map((node) => {
      const acquire = node.acquire.bind(node);
      let times = 0;
      node.acquire = (command) => (times++, acquire(command));
      return () => times;
    });
    expect(await services[1]!.tryLock('job')).toBeNull();
    for (const times of asked) expect(times()).toBeLessThanOrEqual(1);
  });
});

it('a caller that collides each time gives up before its lease would be over, not with an error when it is', async () => {
  const refused: Busy = { granted: false, holder: '', leaseLeftMs: 0, ahead: 0, fence: 0 };
  const attempt = { attempt: { hasCollided: true }, reply: Promise.resolve(refused) };
  let tries = 0;
  expect(await untilDecided(() => (tries++, attempt), { delayAfterCollision: () => 10 }, 150)).toBe(refused);
  expect(tries).toBeLessThanOrEqual(8);
});
