/**
 * Finds the circles of a graph: its strongly connected parts of more than one node (Tarjan 1972, without recursion).
 *
 * @param next the nodes that follow each node
 */
export function circlesOf(next: ReadonlyMap<string, readonly string[]>): string[][] {
  const numbers = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const isOpen = new Set<string>();
  const circles: string[][] = [];

  const enter = (node: string): Visit => {
    numbers.set(node, numbers.size);
    lowest.set(node, numbers.get(node)!);
    open.push(node);
    isOpen.add(node);
    return { node, rest: (next.get(node) ?? []).values() };
  };
  const lower = (node: string, number: number): void => void lowest.set(node, Math.min(lowest.get(node)!, number));

  for (const start of next.keys()) {
    if (numbers.has(start)) continue;
    const path = [enter(start)];
    while (path.length > 0) {
      const { node, rest } = path.at(-1)!;
      const step = rest.next();
      if (!step.done) {
        if (!numbers.has(step.value)) path.push(enter(step.value));
        else if (isOpen.has(step.value)) lower(node, numbers.get(step.value)!);
        continue;
      }
      path.pop();
      const before = path.at(-1);
      if (before) lower(before.node, lowest.get(node)!);
      if (lowest.get(node) !== numbers.get(node)) continue;
      const part = open.splice(open.indexOf(node));
      for (const member of part) isOpen.delete(member);
      if (part.length > 1) circles.push(part);
    }
  }
  return circles;
}

interface Visit {
  readonly node: string;
  /** The nodes behind it that have not been visited from it. */
  readonly rest: Iterator<string, undefined>;
}
