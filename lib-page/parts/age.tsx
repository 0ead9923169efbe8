import { age } from './format.js';
import { useElapsed } from './moment.js';

interface AgeProps {
  /** How old it was in the snapshot. Null when nobody knows. */
  readonly ms: number | null;
}

/** Shows an age that ticks. */
export function Age({ ms }: AgeProps) {
  const elapsed = useElapsed();
  if (ms === null) return <Unknown />;
  return <span class="nowrap">{age(ms + elapsed)}</span>;
}

/** Shows what is left of a lease, ticking down. The watchdog of its process renews it again and again. */
export function LeaseLeft({ ms }: AgeProps) {
  const elapsed = useElapsed();
  if (ms === null) return <span class="warn">no end</span>;
  return <span class="nowrap">{age(ms - elapsed)}</span>;
}

/** Stands for a fact that nobody told. */
export function Unknown() {
  return (
    <span class="muted" title="Its process did not answer, or is another tool">
      unknown
    </span>
  );
}
