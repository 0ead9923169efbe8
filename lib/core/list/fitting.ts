/** Takes the first items whose JSON is no longer than so many characters together. */
export function fitting<Item>(items: readonly Item[], characters: number): readonly Item[] {
  let left = characters;
  const end = items.findIndex((item) => (left -= JSON.stringify(item).length + 1) < 0);
  return end < 0 ? items : items.slice(0, end);
}
