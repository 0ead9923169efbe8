import { describe, expect, it } from '@jest/globals';
import { judge } from '../support/checker/verdict.js';
import type { Section } from '../support/processes/contenders.js';

/** A stay of 10 ms, 100 ms after the one before, with a lease of 50 ms. */
function stay(number: number, more: Partial<Section> = {}): Section {
  const beganAt = more.beganAt ?? 5000 + 100 * number;
  const section = {
    pid: 40 + number,
    keys: ['a'],
    mode: 'exclusive',
    token: `t${number}`,
    fence: number,
    isHeld: true,
    askedAt: beganAt - 1,
    beganAt,
    endedAt: beganAt + 10,
    goodUntil: beganAt + 50,
    unlocked: true,
    unlockedAt: beganAt + 11,
  } as const;
  return { ...section, wroteAt: section.endedAt, ...more };
}

const [read, permit] = [{ mode: 'read' }, { mode: 'permit', permits: 2 }] as const;
const together = [{ beganAt: 5000 }, { beganAt: 5001 }, { beganAt: 5002 }] as const;

const BROKEN: readonly (readonly [what: string, journal: readonly Section[], told: string])[] = [
  [
    'S1, two holders inside',
    [stay(1, { beganAt: 5000 }), stay(2, { beganAt: 5004 })],
    `S1 a: both inside at once
  process 41, token t1, exclusive, fence 1: inside from 0.0 ms to 10.0 ms, lease until 50.0 ms, wrote at 10.0 ms, unlock answered true at 11.0 ms
  process 42, token t2, exclusive, fence 2: inside from 4.0 ms to 14.0 ms, lease until 54.0 ms, wrote at 14.0 ms, unlock answered true at 15.0 ms`,
  ],
  [
    'S1, a reader and a writer inside',
    [
      stay(1, { ...read, ...together[0] }),
      stay(2, { ...read, ...together[1] }),
      stay(3, { mode: 'write', ...together[2] }),
    ],
    `S1 a: both inside at once
  process 41, token t1, read, fence 1: inside from 0.0 ms to 10.0 ms, lease until 50.0 ms, wrote at 10.0 ms, unlock answered true at 11.0 ms
  process 43, token t3, write, fence 3: inside from 2.0 ms to 12.0 ms, lease until 52.0 ms, wrote at 12.0 ms, unlock answered true at 13.0 ms`,
  ],
  [
    'S1, a reader beside the nested call of another one that writes',
    [
      stay(1, { ...read, beganAt: 5000 }),
      stay(1, { mode: 'write', fence: 2, beganAt: 5001 }),
      stay(3, { ...read, fence: 3, beganAt: 5002 }),
    ],
    `S1 a: both inside at once
  process 41, token t1, write, fence 2: inside from 0.0 ms to 10.0 ms, lease until 50.0 ms, wrote at 10.0 ms, unlock answered true at 11.0 ms
  process 43, token t3, read, fence 3: inside from 1.0 ms to 11.0 ms, lease until 51.0 ms, wrote at 11.0 ms, unlock answered true at 12.0 ms`,
  ],
  [
    'S1, more inside than there are permits',
    [1, 2, 3].map((number) => stay(number, { ...permit, ...together[number - 1] })),
    `S1 a: 3 inside at once, of 2 permits
  process 41, token t1, permit 1 of 2, fence 1: inside from 0.0 ms to 10.0 ms, lease until 50.0 ms, wrote at 10.0 ms, unlock answered true at 11.0 ms
  process 42, token t2, permit 1 of 2, fence 2: inside from 1.0 ms to 11.0 ms, lease until 51.0 ms, wrote at 11.0 ms, unlock answered true at 12.0 ms
  process 43, token t3, permit 1 of 2, fence 3: inside from 2.0 ms to 12.0 ms, lease until 52.0 ms, wrote at 12.0 ms, unlock answered true at 13.0 ms`,
  ],
  [
    'S2, a fence that went back',
    [stay(1, { fence: 7, wroteAt: undefined }), stay(2, { fence: 7 })],
    `S2 a: fence not larger
  process 41, token t1, exclusive, fence 7: inside from 0.0 ms to 10.0 ms, lease until 50.0 ms, unlock answered true at 11.0 ms
  process 42, token t2, exclusive, fence 7: inside from 100.0 ms to 110.0 ms, lease until 150.0 ms, wrote at 110.0 ms, unlock answered true at 111.0 ms`,
  ],
  [
    'S2, of a reader who came after a writer',
    [stay(1, { mode: 'write', fence: 3 }), stay(2, read)],
    `S2 a: fence not larger
  process 41, token t1, write, fence 3: inside from 0.0 ms to 10.0 ms, lease until 50.0 ms, wrote at 10.0 ms, unlock answered true at 11.0 ms
  process 42, token t2, read, fence 2: inside from 100.0 ms to 110.0 ms, lease until 150.0 ms, wrote at 110.0 ms, unlock answered true at 111.0 ms`,
  ],
  [
    'S2, of a permit that was asked for later',
    [stay(1, { ...permit, fence: 3 }), stay(2, permit)],
    `S2 a: fence not larger
  process 41, token t1, permit 1 of 2, fence 3: inside from 0.0 ms to 10.0 ms, lease until 50.0 ms, wrote at 10.0 ms, unlock answered true at 11.0 ms
  process 42, token t2, permit 1 of 2, fence 2: inside from 100.0 ms to 110.0 ms, lease until 150.0 ms, wrote at 110.0 ms, unlock answered true at 111.0 ms`,
  ],
  [
    'S3, a signal that did not abort',
    [stay(1, { isHeld: false, endedAt: 5150, silentAt: 5160 })],
    `S3 a: the lease was over, a task ran, and the signal had not aborted
  process 41, token t1, exclusive, fence 1: inside from 0.0 ms to 50.0 ms, lost then, lease until 50.0 ms, signal silent at 60.0 ms, wrote at 10.0 ms, unlock answered true at 11.0 ms`,
  ],
  [
    'S4, a lock that was taken within its lease',
    [stay(1, { isHeld: false, endedAt: 5120, abortedAt: 5120, lost: 'taken', unlocked: false })],
    `S4 a: somebody else took it, or freed it, within its lease
  process 41, token t1, exclusive, fence 1: inside from 0.0 ms to 20.0 ms, lost then, lease until 50.0 ms, signal aborted at 20.0 ms (taken), wrote at 10.0 ms, unlock answered false at 11.0 ms`,
  ],
  [
    'S4, a lock that was gone when it was given back',
    [stay(1, { unlocked: false })],
    `S4 a: it was gone when its holder gave it back within its lease
  process 41, token t1, exclusive, fence 1: inside from 0.0 ms to 10.0 ms, lease until 50.0 ms, wrote at 10.0 ms, unlock answered false at 11.0 ms`,
  ],
  [
    'S5, a late write with a fence that is large enough',
    [stay(1, { fence: 9, isHeld: false, endedAt: 5150, wroteAt: 5300 }), stay(2, { fence: 9 })],
    `S5 a: a late write would not be refused
  process 41, token t1, exclusive, fence 9: inside from 0.0 ms to 50.0 ms, lost then, lease until 50.0 ms, wrote at 200.0 ms, unlock answered true at 11.0 ms
  process 42, token t2, exclusive, fence 9: inside from 100.0 ms to 110.0 ms, lease until 150.0 ms, wrote at 110.0 ms, unlock answered true at 111.0 ms`,
  ],
  [
    'S5, the write of a holder with a fence that is too small',
    [stay(1, { fence: 9 }), stay(2)],
    `S5 a: the write of a holder would be refused
  process 41, token t1, exclusive, fence 9: inside from 0.0 ms to 10.0 ms, lease until 50.0 ms, wrote at 10.0 ms, unlock answered true at 11.0 ms
  process 42, token t2, exclusive, fence 2: inside from 100.0 ms to 110.0 ms, lease until 150.0 ms, wrote at 110.0 ms, unlock answered true at 111.0 ms`,
  ],
  [
    'S7, a body without a lock',
    [stay(1, { token: undefined, fence: undefined, mode: undefined, goodUntil: 5100, unlockedAt: undefined })],
    `S7 a: the body ran without a lock
  process 41, token undefined, undefined, fence undefined: inside from 0.0 ms to 10.0 ms, lease until 0.0 ms, wrote at 10.0 ms`,
  ],
  [
    'S7, a body that began with a lease that was over',
    [stay(1, { goodUntil: 5100 })],
    `S7 a: the body ran on a lock that was not valid
  process 41, token t1, exclusive, fence 1: inside from 0.0 ms to 10.0 ms, lease until 0.0 ms, wrote at 10.0 ms, unlock answered true at 11.0 ms`,
  ],
  [
    'S7, a body that ran though the call failed',
    [stay(1, { refused: 'LOCK_TIMEOUT', unlockedAt: undefined })],
    `S7 a: the body ran though its call got no lock
  process 41, token t1, exclusive, fence 1: inside from 0.0 ms to 10.0 ms, lease until 50.0 ms, wrote at 10.0 ms, its call failed with LOCK_TIMEOUT`,
  ],
];

describe('The checker of the lab', () => {
  it.each(BROKEN)('the checker of the lab reports %s, and says who, where and when', (what, journal, told) => {
    const verdict = judge(journal);
    const property = what.slice(0, 2) as 'S1';
    expect(verdict.examples(property)).toBe(told);
    expect(verdict.count(property)).toBe(1);
    expect(verdict.examples()).toContain(verdict.examples(property));
  });

  it('the checker of the lab reports S6, what is left in the end', () => {
    const verdict = judge([], {
      census: { keys: ['lock:a'], channels: ['{lock:}:wake:x'], left: { 41: ['Timeout', 'TCPSocketWrap'], 42: [] } },
    });
    expect(verdict.examples()).toBe(
      'S6 lock:a: left in Redis after its lease\n\nS6 {lock:}:wake:x: somebody still listens there\n\nS6 process 41: has left Timeout, TCPSocketWrap',
    );
  });

  it('the checker of the lab accepts late writes, readers together, all permits, and plain losses', () => {
    const late = stay(1, {
      isHeld: false,
      endedAt: 5150,
      abortedAt: 5150,
      lost: 'expired',
      wroteAt: 5260,
      unlocked: false,
      unlockedAt: 5261,
    });
    const readers = [
      stay(1, { ...read, keys: ['b'], fence: 4, beganAt: 5000 }),
      stay(2, { ...read, keys: ['b'], fence: 3, beganAt: 5001 }),
      stay(3, { mode: 'write', keys: ['b'], fence: 5 }),
    ];
    const permits = [1, 2].map((number) =>
      stay(number, { ...permit, keys: ['c'], fence: 3 - number, beganAt: 5000 + number, askedAt: 4990 }),
    );
    // The last one asked before the others were in, and was slow to note that it was.
    const slow = [
      { fence: 9, beganAt: 5000 },
      { fence: 10, beganAt: 5020 },
      { fence: 3, beganAt: 5040, askedAt: 4990 },
    ].map((more, index) => stay(index + 1, { ...permit, keys: ['d'], ...more }));
    // A reader, and what it writes in a nested call.
    const nested = [
      stay(1, { ...read, keys: ['e'], beganAt: 5000, endedAt: 5030 }),
      stay(1, { mode: 'write', keys: ['e'], fence: 2, beganAt: 5010, endedAt: 5020 }),
    ];
    const verdict = judge(
      [late, stay(2), ...nested, ...readers, ...permits, ...slow, stay(4, { keys: ['a', 'b'], fence: 9 })],
      { census: { keys: [], channels: [], left: { 41: [] } } },
    );
    expect(verdict.examples()).toBe('');
    expect(verdict.refusedWrites).toBe(1);
  });

  it('the checker of the lab lets a process that was stopped find out on its first line that it is too late', () => {
    const tooLate = stay(2, { fence: 1, goodUntil: 5200, isHeld: false, unlocked: false });
    expect(judge([stay(1, { fence: 2 }), tooLate]).count('S7')).toBe(1);
    const verdict = judge([stay(1, { fence: 2 }), tooLate], { standsStill: true });
    expect(verdict.examples()).toBe('');
    expect(verdict.refusedWrites).toBe(1);
    // The holder writes after it, in time.
    expect(
      judge([stay(1, { fence: 2, endedAt: 5250, wroteAt: 5250, unlockedAt: 5251, goodUntil: 5300 }), tooLate], {
        standsStill: true,
      }).examples(),
    ).toBe('');
  });

  it('the checker of the lab blames nobody for what Redis forgot, and shows at most five examples', () => {
    const taken = Array.from({ length: 9 }, (_, number) =>
      stay(number + 1, { isHeld: false, abortedAt: 5000, lost: 'taken' }),
    );
    expect(judge(taken, { redisForgets: true }).examples()).toBe('');
    expect(judge(taken).count('S4')).toBe(9);
    expect(judge(taken).examples().match(/S4/g)).toHaveLength(5);
  });
});
