/** How many of a kind to remember that an app can make without end. */
const MOST = 32;

/** Returns a list with one more item: the first one stays, and the last ones. */
export const remember = <T>(items: readonly T[], item: T): readonly T[] => [
  ...items.toSpliced(1, items.length < MOST ? 0 : 1),
  item,
];
