/** Most items of each list of a report. The page shows no more of all processes together. */
export const MOST_ROWS = 200;
export const MOST_HOT_KEYS = 20;
export const MOST_LOSSES = 50;
export const MOST_HISTORY = 100;
export const MOST_QUEUES = 200;
export const MOST_WAITING_HOLDERS = 100;

/** Takes the first items whose JSON is no longer than so many characters together. */
export function fitting<Item>(items: readonly Item[], characters: number): readonly Item[] {
  let left = characters;
  const end = items.findIndex((item) => (left -= JSON.stringify(item).length + 1) < 0);
  return end < 0 ? items : items.slice(0, end);
}
