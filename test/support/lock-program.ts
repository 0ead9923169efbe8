import fc from 'fast-check';
import type { Sharing } from '../../lib/store/lock-store.js';

/** The last one has a hash tag of its own. */
export const KEYS = ['a', 'b', 'c{tag}'];

/** Time passes in steps of 4 s, and no lease ends within 1 s of a step: so nothing depends on how long a program takes. */
const STEP_MS = 4_000;
const LEASES_MS = [10_000, 14_000, 30_000];

/** Somebody new asks for a lock. */
export interface Ask {
  readonly do: 'ask';
  readonly process: number;
  readonly keys: readonly string[];
  readonly sharing: Sharing;
  readonly leaseMs: number;
  readonly how: 'try' | 'queue' | 'run';
  readonly label: string | undefined;
  /** Whether it goes in one command with what its process did before. */
  readonly together: boolean;
}

/** Somebody who asked before does something; `who` is counted among those that there are then. */
export type ByCaller =
  | { readonly do: 'again' | 'cancel' | 'release' | 'keep' | 'reserve' | 'upgrade' | 'downgrade' | 'forget'; readonly who: number; readonly together: boolean }
  | { readonly do: 'renew'; readonly who: number; readonly leaseMs: number; readonly together: boolean };

/** One step of a program. */
export type Operation =
  | Ask
  | ByCaller
  | { readonly do: 'force'; readonly key: string }
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'crash'; readonly process: number }
  | { readonly do: 'forget fences' };

const process = fc.nat(2);
const who = fc.nat(9);
const leaseMs = fc.constantFrom(...LEASES_MS);
const together = fc.boolean();

const ask = fc.record({
  do: fc.constant('ask' as const),
  process,
  keys: fc.oneof({ weight: 7, arbitrary: fc.constant(KEYS.slice(0, 1)) }, { weight: 4, arbitrary: fc.subarray(KEYS, { minLength: 1 }) }),
  sharing: fc.constantFrom<Sharing>('exclusive', 'exclusive', 'read', 'read', 'read', 'permits:2', 'permits:2', 'permits:3'),
  leaseMs,
  how: fc.constantFrom('try' as const, 'queue' as const, 'queue' as const, 'run' as const),
  label: fc.constantFrom(undefined, 'the report/of today'),
  together,
});

const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 12, arbitrary: ask },
  ...(['release', 'again', 'cancel', 'keep', 'reserve', 'upgrade', 'downgrade', 'forget'] as const).map((verb, index) => ({
    weight: [8, 6, 2, 1, 1, 2, 2, 1][index]!,
    arbitrary: fc.record({ do: fc.constant(verb), who, together }),
  })),
  { weight: 2, arbitrary: fc.record({ do: fc.constant('renew' as const), who, leaseMs, together: fc.constant(false) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('force' as const), key: fc.constantFrom(...KEYS) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(STEP_MS, STEP_MS, 2 * STEP_MS, 3 * STEP_MS) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('crash' as const), process }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('forget fences' as const) }) },
);

export const programs: fc.Arbitrary<Operation[]> = fc.array(operation, { minLength: 1, maxLength: 40, size: 'max' });
