import { expect, it } from '@jest/globals';
import type { Cluster } from 'ioredis';
import { LockUnavailableError } from 'nest-redis-lock';
import { Doubts } from '../../lib/redis/cluster/doubts.js';
import type { SilentNodes } from '../../lib/redis/cluster/silent-nodes.js';
import { refusedBy } from '../../lib/redis/connection/connection-errors.js';
import { PlainCall, type Call } from '../../lib/redis/connection/plain-call.js';

const NAMES = ['10.0.0.1:6379', '10.0.0.2:6379', '10.0.0.3:6379'];
const nodes = NAMES.map((name) => ({ status: 'ready', options: { host: name.split(':')[0], port: 6379 } }));
const slots = Array.from({ length: 16384 }, (_, slot) => [NAMES[slot % 3]!]);
const cluster = { status: 'ready', slots, nodes: () => nodes } as unknown as Cluster;
const masterOf = (slot: number | undefined) => slots[slot!]![0];

it('after all masters gave no reply, messages avoid those that still give none', () => {
  const doubts = new Doubts(cluster, { names: () => [] } as unknown as SilentNodes);
  for (const slot of [0, 1, 2]) doubts.messageFailed(slot);
  expect(doubts.slotForMessage()).toBeDefined();
  doubts.replied(new PlainCall(['PUBLISH', 'channel', 'message'], 4));
  const [first, second] = [doubts.slotForMessage(), doubts.slotForMessage()];
  expect([masterOf(first), second]).toEqual([NAMES[1], first]);
});

it('a message that is not to go over a node goes over another one, as long as one is well', () => {
  const doubts = new Doubts(cluster, { names: () => [] } as unknown as SilentNodes);
  const usual = masterOf(doubts.slotForMessage())!;
  const other = masterOf(doubts.slotForMessage(usual))!;
  expect(other).not.toBe(usual);
  expect(masterOf(doubts.slotForMessage(other))).toBe(usual);
  for (const slot of [0, 1, 2]) if (masterOf(slot) !== usual) doubts.messageFailed(slot);
  expect(masterOf(doubts.slotForMessage())).toBe(usual);
});

it('a master that refuses keys counts as down until it serves one: that it passes a message on says nothing', () => {
  const doubts = new Doubts(cluster, { names: () => [] } as unknown as SilentNodes);
  const call = { slot: 1 } as Call;
  doubts.saidDown(call);
  doubts.replied(new PlainCall(['PUBLISH', 'channel', 'message'], 1));
  expect(doubts.nodesDown([])).toEqual(new Set([NAMES[1]]));
  doubts.replied(call);
  expect(doubts.nodesDown([])).toEqual(new Set());
});

it('a master that refuses one key in a slot in doubt serves the slot; one that counts the cluster as down does not', async () => {
  const doubts = new Doubts(cluster, { names: () => [] } as unknown as SilentNodes);
  doubts.cover(new LockUnavailableError('late'), [1], () => 1, undefined);
  const asked = (said: string) => doubts.settle(1, async () => Promise.reject(refusedBy(NAMES[1]!, new Error(said))));
  await expect(asked('WRONGTYPE Operation against a key')).resolves.toBeUndefined();
  await expect(asked('CLUSTERDOWN The cluster is down')).rejects.toThrow(LockUnavailableError);
});
