import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  LockUnavailableError,
  type AcquireCommand,
  type Busy,
  type Granted,
  type KeyView,
  type OwnedLock,
  type RenewalOutcome,
  type StoreListener,
} from 'nest-redis-lock';
import { fenceCountFor } from '../../lib/store/lock-store.js';
import { QuorumLockStore } from '../../lib/store/quorum/quorum-lock.store.js';
import { aborted, deferred, turn, until } from '../support/deferred.js';
import { MemoryNode } from '../support/stores/memory-node.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';

/** A node whose replies take so long, or never come while it hangs. */
class FarNode extends MemoryNode {
  isHung = false;
  readonly #delayMs = 150;

  override async acquire(command: AcquireCommand): Promise<Granted | Busy> {
    await this.#delay();
    return super.acquire(command);
  }

  override async renew(locks: readonly OwnedLock[]): Promise<RenewalOutcome> {
    await this.#delay();
    return super.renew(locks);
  }

  #delay(): Promise<unknown> {
    return this.isHung ? new Promise(() => {}) : sleep(this.#delayMs);
  }
}

describe('A lock on two near nodes and a far one, when a near one has lost it', () => {
  const lease = { leaseMs: 60_000, sharing: 'exclusive', label: undefined, queue: false } as const;
  let near: MemoryNode;
  let forgetful: MemoryNode;
  let far: FarNode;
  let store: QuorumLockStore;
  let lock: OwnedLock;

  beforeEach(async () => {
    forgetful = new MemoryNode();
    far = new FarNode();
    near = new MemoryNode();
    store = new QuorumLockStore([near, forgetful, far]);
    const { token } = (await store.acquire({ ...lease, keys: ['a'], token: 'caller.1' })) as Granted;
    lock = { keys: ['a'], token: token!, leaseMs: 60_000 };
    await until(() => far.isLocked('a'));
    await turn();
    await forgetful.release(lock);
  });

  it('a renewal waits for the far node as long as that usually takes', async () => {
    for (let renewal = 0; renewal < 3; renewal++) expect(await store.renew([lock])).toEqual({ gone: [], unknown: [] });
  });

  it('a renewal waits that long also after the release of a lock that the far node had refused', async () => {
    await far.acquire({ ...lease, keys: ['b'], token: 'caller.2' });
    const refused = jest.spyOn(far, 'acquire');
    const { token } = (await store.acquire({ ...lease, keys: ['b'], token: 'caller.3' })) as Granted;
    expect(await refused.mock.results[0]!.value).toMatchObject({ granted: false });
    await turn();
    await store.release({ keys: ['b'], token: token!, leaseMs: 60_000 });
    expect(await store.renew([lock])).toEqual({ gone: [], unknown: [] });
  });

  it('a renewal waits that long also after a question for who holds a lock, which a process may answer at once', async () => {
    await store.describe(lock.token);
    expect(await store.renew([lock])).toEqual({ gone: [], unknown: [] });
  });

  it('a caller that asks for a lock does not wait that long, while a renewal does', async () => {
    await near.acquire({ ...lease, keys: ['b'], token: 'caller.2' });
    far.isHung = true;
    const ended: string[] = [];
    const renewal = store.renew([lock]).catch(() => ended.push('renewal'));
    await turn();
    const givenBack = jest.spyOn(forgetful, 'cancel').mockImplementation(async () => void ended.push('first try'));
    await store.acquire({ ...lease, keys: ['b'], token: 'caller.3' });
    await renewal;
    expect(givenBack).toHaveBeenCalled();
    expect(ended.indexOf('first try')).toBeLessThan(ended.indexOf('renewal'));
  });

  it('a renewal does not wait for the far node when that hangs', async () => {
    far.isHung = true;
    await expect(store.renew([lock])).rejects.toMatchObject({ detail: expect.stringContaining('No majority') });
  });
});

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

/** A node whose grants arrive when the lock is being released: with the reply to that, or one tick later. */
class SlowNode extends MemoryNode {
  releases = 0;
  readonly raisedTo: number[] = [];
  readonly #grantsComeLater: boolean;
  #deliver!: () => void;
  readonly #delivered = new Promise<void>((resolve) => (this.#deliver = resolve));

  constructor(grantsComeLater: boolean) {
    super();
    this.#grantsComeLater = grantsComeLater;
  }

  override async acquire(command: AcquireCommand): Promise<Granted | Busy> {
    const reply = super.acquire(command);
    await this.#delivered;
    return reply;
  }

  override raise(fence: number): void {
    this.raisedTo.push(fence);
  }

  override release(lock: OwnedLock): Promise<boolean> {
    this.releases++;
    if (this.#grantsComeLater) setImmediate(this.#deliver);
    else this.#deliver();
    void super.release(lock);
    return Promise.resolve(true);
  }
}

describe('A lock that is released before all nodes have replied', () => {
  // No time passes: a node that has not replied for long would get the release only when it has.
  beforeEach(() => void jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] }));
  afterEach(() => void jest.useRealTimers());

  it.each([
    ['once on a node whose grant arrives with the reply to that', false, 1],
    ['once more on a node whose grant arrives later', true, 2],
  ])('a lock is released %s', async (_what, grantsComeLater, releases) => {
    const slow = new SlowNode(grantsComeLater);
    const store = new QuorumLockStore([new MemoryNode(), new MemoryNode(), slow]);
    const command = { keys: ['a'], leaseMs: 60_000, sharing: 'exclusive', label: undefined } as const;
    const { token } = (await store.acquire({ ...command, token: 'caller.1', queue: false })) as Granted;
    expect(await store.release({ keys: ['a'], token: token!, leaseMs: 60_000 })).toBe(true);
    await store.close();
    expect(slow.releases).toBe(releases);
  });

  it('a node hears of the fence when it has replied, and not before', async () => {
    const slow = new SlowNode(true);
    const store = new QuorumLockStore([new MemoryNode(), new MemoryNode(), slow]);
    const command = { keys: ['a'], leaseMs: 60_000, sharing: 'exclusive', label: undefined } as const;
    const { token, fence } = (await store.acquire({ ...command, token: 'caller.1', queue: false })) as Granted;
    expect(slow.raisedTo).toEqual([]);
    await store.release({ keys: ['a'], token: token!, leaseMs: 60_000 });
    await store.close();
    expect(slow.raisedTo).toEqual([fence + fenceCountFor(token!) - 1]);
  });
});

/** A node that says nothing of its locks until it is closed. */
class SilentNode extends MemoryNode {
  readonly #closed = deferred<never>();

  override isLocked(): Promise<boolean> {
    return this.#closed.promise;
  }

  override inspect(): Promise<KeyView | undefined> {
    return this.#closed.promise;
  }

  override async close(): Promise<void> {
    await super.close();
    this.#closed.reject(new LockUnavailableError('The connection has been closed.'));
  }
}

describe('A quorum of which two nodes hang', () => {
  it('a quorum closes at once while somebody looks at a lock', async () => {
    const store = new QuorumLockStore([new MemoryNode(), new SilentNode(), new SilentNode()]);
    const looks = Promise.allSettled([store.isLocked('a'), store.inspect('a')]);
    await store.close();
    for (const look of await looks)
      expect(look).toMatchObject({ status: 'rejected', reason: { code: 'LOCK_UNAVAILABLE' } });
  });
});

/** A node that is down. */
class DeadNode extends MemoryNode {
  override isLocked(): Promise<boolean> {
    return Promise.reject(new LockUnavailableError('It is down.'));
  }

  override inspect(): Promise<KeyView | undefined> {
    return Promise.reject(new LockUnavailableError('It is down.'));
  }
}

describe('A look at a key that the nodes of a quorum do not agree about', () => {
  const command = { keys: ['a'], leaseMs: 60_000, sharing: 'exclusive', label: undefined, queue: false } as const;

  it.each([
    ['two are down', [new DeadNode(), new DeadNode()]],
    ['one is down and one hangs', [new DeadNode(), new SilentNode()]],
  ])('while %s, it shows whom most nodes name, because nobody else can get it', async (_what, others) => {
    const live = [0, 1, 2].map(() => new MemoryNode());
    const store = new QuorumLockStore([...live, ...others]);
    for (const node of live.slice(0, 2)) await node.acquire({ ...command, token: 'caller.1' });
    await live[2]!.acquire({ ...command, token: 'other.1' });
    expect(await store.isLocked('a')).toBe(true);
    expect(await store.inspect('a')).toMatchObject({ holders: [{ token: 'caller.1' }] });
    await store.close();
  });

  it('while a majority is down, it fails', async () => {
    const store = new QuorumLockStore([new MemoryNode(), new DeadNode(), new DeadNode()]);
    for (const look of [store.isLocked('a'), store.inspect('a')])
      await expect(look).rejects.toMatchObject({
        detail: '2 of 3 nodes failed, and a lock needs 2 that agree. It is down.',
      });
    await store.close();
  });
});

describe('A process that holds so many locks on a quorum that it looks for those it has lost', () => {
  /** The size at which it first looks. */
  const MANY = 1024;
  let nodes: MemoryNode[];
  let here: ClosableLockService;
  let there: ClosableLockService;

  beforeEach(() => {
    nodes = [0, 1, 2].map(() => new MemoryNode());
    const service = () => lockService(new QuorumLockStore(nodes), { lease: '3s', shutdownGrace: 0 });
    [here, there] = [service(), service()];
  });

  afterEach(() => Promise.all([here.close(), there.close()]));

  const lockMany = (count: number) => Promise.all(Array.from({ length: count }, (_, n) => here.lock(`many:${n}`)));

  it('a process hears of each forced release, also of a lock that was granted at that moment', async () => {
    const locks = await lockMany(MANY + 60);
    const reasons = Promise.all(locks.slice(MANY - 60).map(({ signal }) => aborted(signal)));
    await Promise.all(locks.slice(MANY - 60).map(({ key }) => there.forceUnlock(key, { by: 'ops' })));
    for (const reason of await reasons) expect(reason).toMatchObject({ reason: 'taken', forced: { by: 'ops' } });
  });

  it('a process still hands a lock off from caller to caller', async () => {
    await lockMany(MANY - 1);
    // A lock of a quorum is handed off for 20 ms only.
    const clock = jest.spyOn(performance, 'now').mockReturnValue(performance.now());
    const first = await here.lock('a');
    const second = here.lock('a');
    await here.lock('the one that makes it look');
    await first.unlock();
    expect((await second).fence).toBe(first.fence + 1);
    clock.mockRestore();
  });

  it('a process forgets a lock whose lease is over, and none that it has renewed', async () => {
    const listeners: StoreListener[] = [];
    nodes.forEach((node) => jest.spyOn(node, 'listen').mockImplementation((listener) => void listeners.push(listener)));
    const store = new QuorumLockStore(nodes);
    const reported: string[] = [];
    store.listen({ forceReleased: (token) => void reported.push(token) } as Partial<StoreListener> as StoreListener);
    const clock = jest.spyOn(performance, 'now').mockReturnValue(performance.now());
    const grant = async (key: string, leaseMs: number) => {
      const command = { keys: [key], leaseMs, sharing: 'exclusive', label: undefined, queue: false } as const;
      const { token } = (await store.acquire({ ...command, token: `caller.${key}` })) as Granted;
      return { keys: [key], leaseMs, token: token! };
    };
    const [over, renewed, reserved] = [await grant('over', 1000), await grant('renewed', 1000), await grant('c', 1000)];
    clock.mockReturnValue(performance.now() + 900);
    await store.renew([renewed]);
    await store.reserve(reserved);
    clock.mockReturnValue(performance.now() + 101);
    for (let number = 0; number < MANY; number++) await grant(`many:${number}`, 60_000);
    for (const { token } of [over, renewed, reserved]) for (const one of listeners) one.forceReleased(token, {});
    expect(reported).toEqual([renewed.token, reserved.token]);
    clock.mockRestore();
    await store.close();
  });
});

describe('A lock of a quorum that is released by force', () => {
  const command = { keys: ['a'], leaseMs: 60_000, sharing: 'exclusive', label: undefined, queue: false } as const;
  const granted = { granted: true, fence: 1, fenceCount: 1, contended: false } as const;
  const busy: Busy = { granted: false, holder: 'other', leaseLeftMs: 1, ahead: 0, fence: 0 };
  let nodes: MemoryNode[];
  let listeners: StoreListener[];
  /** Give the replies of the nodes to the first attempt. */
  let reply: ((reply: Granted | Busy) => void)[];
  let own: string;
  let store: QuorumLockStore;
  let reported: string[];

  beforeEach(() => {
    [listeners, reply, reported] = [[], [], []];
    nodes = [0, 1, 2].map(() => new MemoryNode());
    for (const node of nodes) {
      jest.spyOn(node, 'listen').mockImplementation((listener) => void listeners.push(listener));
      jest.spyOn(node, 'acquire').mockImplementationOnce(({ token }) => {
        own = token;
        const first = deferred<Granted | Busy>();
        reply.push(first.resolve);
        return first.promise;
      });
    }
    store = new QuorumLockStore(nodes);
    store.listen({ forceReleased: (token) => void reported.push(token) } as Partial<StoreListener> as StoreListener);
  });

  afterEach(() => store.close());

  it('an attempt does not count the grants that were released by force meanwhile', async () => {
    const attempt = store.acquire({ ...command, token: 'caller.1', queue: true, fair: false });
    reply[0]!(granted);
    await turn();
    for (const at of [0, 2]) listeners[at]!.forceReleased(own, {});
    for (const at of [1, 2]) reply[at]!(granted);
    expect(await attempt).toMatchObject({ granted: false });
    expect(reported).toEqual([]);
  });

  it('a lock is lost when the last node that might have it refuses', async () => {
    const attempt = store.acquire({ ...command, token: 'caller.1' });
    for (const at of [0, 1]) reply[at]!(granted);
    expect(await attempt).toMatchObject({ granted: true });
    listeners[0]!.forceReleased(own, {});
    expect(reported).toEqual([]);
    reply[2]!(busy);
    await turn();
    expect(reported).toEqual([own]);
    listeners[1]!.forceReleased(own, {});
    expect(reported).toHaveLength(1);
  });
});

describe('A process that loses its connections to a quorum again and again', () => {
  it('a process verifies its locks twice a second', async () => {
    const nodes = [0, 1, 2].map(() => new MemoryNode());
    const listeners: StoreListener[] = [];
    nodes.forEach((node) => jest.spyOn(node, 'listen').mockImplementation((listener) => void listeners.push(listener)));
    const renew = jest.spyOn(nodes[0]!, 'renew');
    const locks = lockService(new QuorumLockStore(nodes), { lease: '1m', shutdownGrace: 0 });
    await locks.lock('a');
    const reconnect = () => listeners.forEach((listener) => listener.resync());
    const startedAt = performance.now();
    for (let drop = 0; drop < 10; drop++) reconnect();
    expect(renew).toHaveBeenCalledTimes(1);
    await until(() => renew.mock.calls.length === 2);
    expect(performance.now()).toBeGreaterThan(startedAt + 490);
    reconnect();
    await locks.close();
    expect(renew).toHaveBeenCalledTimes(2);
  });
});
