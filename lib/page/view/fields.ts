/** Longer texts are cut off, in characters. */
const LONGEST_TEXT = 1_024;

/** Longer lists are cut off. */
const LONGEST_LIST = 5_000;

export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' ? value.slice(0, LONGEST_TEXT) : undefined;

/** Any client can send numbers: sums of them must stay numbers. */
export const numberOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER ? value : undefined;

/** A count or a duration: 0 where there is none. */
export const amountOf = (value: unknown): number => Math.max(0, numberOf(value) ?? 0);

export function listOf<Item>(value: unknown, read: (item: unknown) => Item): Item[] {
  return Array.isArray(value) ? value.slice(0, LONGEST_LIST).map(read) : [];
}

export const textsOf = (value: unknown): string[] => listOf(value, (item) => textOf(item) ?? '');
