import fc from 'fast-check';
import type { Sharing } from '../../../lib/store/lock-store.js';

/** The last one has a hash tag of its own. */
export const KEYS = ['a', 'b', 'c{tag}'];

/**
 * Time passes in steps of 4 s, and no lease ends within 1 s of a step: so nothing depends on how long a program takes.
 */
const STEP_MS = 4_000;
const LEASES_MS = [2_000, 6_000, 30_000];

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
  | {
      readonly do: 'again' | 'cancel' | 'release' | 'keep' | 'reserve' | 'upgrade' | 'downgrade' | 'forget';
      readonly who: number;
      readonly together: boolean;
    }
  | { readonly do: 'renew'; readonly who: number; readonly leaseMs: number; readonly together: boolean }
  /** What it asked for before arrives once more; `when` (of 10) says which it was of all that it asked for. */
  | {
      readonly do: 'upgrade late' | 'downgrade late';
      readonly who: number;
      readonly when: number;
      readonly together: boolean;
    };

/** One step of a program. */
export type Operation =
  | Ask
  | ByCaller
  /** `lose`: another tool deletes the key. */
  | { readonly do: 'force' | 'lose'; readonly key: string }
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'crash'; readonly process: number }
  | { readonly do: 'forget fences' };

/** What the callers of a program want. Few kinds and few keys make them meet more often. */
interface Theme {
  readonly keys: readonly string[];
  readonly sharings: readonly Sharing[];
  readonly processes: number;
  /** How often somebody asks, for every 50 other things that are done. */
  readonly asks: number;
  /**
   * How often a reader becomes a writer, or a writer a reader, or what one asked for in that way arrives late. @default
   * 2, each
   */
  readonly turns?: number;
}

const THEMES: readonly Theme[] = [
  { keys: ['a'], sharings: ['exclusive', 'read', 'read'], processes: 3, asks: 12 },
  { keys: ['a'], sharings: ['permits:2'], processes: 3, asks: 12 },
  { keys: ['c{tag}'], sharings: ['exclusive', 'read', 'permits:2', 'permits:2', 'permits:3'], processes: 3, asks: 12 },
  { keys: ['a', 'b'], sharings: ['exclusive', 'read', 'permits:2'], processes: 2, asks: 12 },
  { keys: KEYS, sharings: ['exclusive', 'read', 'read', 'permits:2', 'permits:3'], processes: 3, asks: 12 },
  { keys: ['a', 'b'], sharings: ['exclusive', 'read', 'read', 'read'], processes: 2, asks: 12, turns: 40 },
  // What one process wants at a time goes in one command.
  { keys: KEYS, sharings: ['exclusive'], processes: 1, asks: 60 },
];

/** How often each of them is done. */
const BY_CALLER = { release: 8, again: 8, cancel: 4, keep: 2, reserve: 1, forget: 1 } as const;

const leaseMs = fc.constantFrom(...LEASES_MS);
const who = fc.nat(9);
const together = fc.constantFrom(true, true, false);

function operation({ keys, sharings, processes, asks, turns = 2 }: Theme): fc.Arbitrary<Operation> {
  const process = fc.nat(processes - 1);
  const ask = fc.record<Ask>({
    do: fc.constant('ask'),
    process,
    keys: fc.oneof(fc.subarray([...keys], { minLength: 1, maxLength: 1 }), fc.subarray([...keys], { minLength: 1 })),
    sharing: fc.constantFrom(...sharings),
    leaseMs,
    how: fc.constantFrom('try', 'queue', 'queue', 'run'),
    label: fc.constantFrom(undefined, 'the report/of today'),
    together,
  });
  const byCaller = Object.entries({ ...BY_CALLER, upgrade: turns, downgrade: turns }).map(([verb, weight]) => ({
    weight,
    arbitrary: fc.record({ do: fc.constant(verb as keyof typeof BY_CALLER | 'upgrade' | 'downgrade'), who, together }),
  }));
  return fc.oneof(
    { weight: asks, arbitrary: ask },
    ...byCaller,
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constant('renew' as const), who, leaseMs, together: fc.constant(false) }),
    },
    {
      weight: turns,
      arbitrary: fc.record({
        do: fc.constantFrom('upgrade late' as const, 'downgrade late' as const),
        who,
        when: fc.nat(10),
        together,
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constantFrom('force' as const, 'lose' as const), key: fc.constantFrom(...keys) }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('pass' as const),
        ms: fc.constantFrom(1, 1, 1, 2, 3).map((steps) => steps * STEP_MS),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('crash' as const), process }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('forget fences' as const) }) },
  );
}

export const programs: fc.Arbitrary<Operation[]> = fc.oneof(
  ...THEMES.map((theme) => fc.array(operation(theme), { minLength: 1, maxLength: 40, size: 'max' })),
);
