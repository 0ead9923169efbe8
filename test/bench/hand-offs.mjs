import { jain } from './figures.mjs';

/**
 * Reads the logs of all processes that shared a key as one story.
 *
 * @throws when two were inside at once: then it is no lock, and no figure of it means anything
 */
export function sharedStory(logs) {
  const sections = logs.flatMap((log, process) =>
    log.map(([caller, entered, left]) => ({ caller: `${process}:${caller}`, entered, left })),
  );
  sections.sort((one, other) => one.entered - other.entered);
  const handOffs = sections.slice(1).map(({ entered }, before) => entered - sections[before].left);
  if (handOffs.some((gap) => gap < 0)) throw new Error('two were inside the lock at once');
  return { sections, handOffs };
}

/** How evenly the sections fell on the processes, and on the callers; those who never got in count as well. */
export function fairness({ sections }, logs, callersEach) {
  const turns = new Map();
  for (const { caller } of sections) turns.set(caller, (turns.get(caller) ?? 0) + 1);
  const never = Array(logs.length * callersEach - turns.size).fill(0);
  return {
    ofProcesses: jain(logs.map((log) => log.length)),
    ofCallers: jain([...turns.values(), ...never]),
  };
}
