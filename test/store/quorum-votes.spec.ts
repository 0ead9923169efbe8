import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockUnavailableError, type AcquireCommand, type Granted } from 'nest-redis-lock';
import { QuorumLockStore } from '../../lib/store/quorum/quorum-lock.store.js';
import { aborted } from '../support/deferred.js';
import { MemoryNode } from '../support/stores/memory-node.js';
import { lockService } from '../support/stores/lock-services.js';

/** A node that grants, but whose replies to that get lost. The store of a real node takes such a lock back later. */
class MuteNode extends MemoryNode {
  override async acquire(command: AcquireCommand): Promise<Granted> {
    await super.acquire(command);
    throw new LockUnavailableError('The reply was lost.');
  }
}

describe('A lock on two of three nodes, while the third one has it too but will take it back', () => {
  const command = { keys: ['a'], leaseMs: 400, sharing: 'exclusive', label: undefined } as const;
  let nodes: MemoryNode[];
  let store: QuorumLockStore;

  beforeEach(() => {
    nodes = [new MemoryNode(), new MemoryNode(), new MuteNode()];
    store = new QuorumLockStore(nodes);
  });

  afterEach(() => store.close());

  const acquire = () => store.acquire({ ...command, token: 'caller.1', queue: false }) as Promise<Granted>;

  it('a lock is renewed and gets new fences while the two nodes that granted it reply', async () => {
    const { token, fence } = await acquire();
    const lock = { keys: ['a'], token: token!, leaseMs: 400 };
    expect(await store.renew([lock])).toEqual({ gone: [], unknown: [] });
    expect((await store.reserve(lock))!.fence).toBeGreaterThan(fence);
    expect(await store.release(lock)).toBe(true);
  });

  it('a lock is neither renewed nor gets fences by the third node in place of one that granted it', async () => {
    const { token } = await acquire();
    const lock = { keys: ['a'], token: token!, leaseMs: 400 };
    expect(await nodes[2]!.isLocked('a')).toBe(true);
    nodes[0]!.isDown = true;
    await expect(store.renew([lock])).rejects.toBeInstanceOf(LockUnavailableError);
    await expect(store.reserve(lock)).rejects.toBeInstanceOf(LockUnavailableError);
  });

  it('a lock ends with its lease when one of the two nodes goes down: others may have it then', async () => {
    const locks = lockService(store, { lease: 400, shutdownGrace: 0 });
    const lock = await locks.lock('a');
    nodes[0]!.isDown = true;
    expect(await aborted(lock.signal)).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
    await locks.close();
  });
});
