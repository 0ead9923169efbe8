import type { HeldRow } from '../../lib/page/page-snapshot.js';
import { hashOf } from '../feed/route.js';
import { Answer } from '../parts/answer.js';
import { KeyLink } from '../parts/caller.js';
import { HeldTable } from './held-table.js';
import { cutNote } from './cut-note.js';
import { lookingFor, type ViewProps } from './view-props.js';
import { WaitingTable } from './waiting-table.js';

/** The first view: what is held, and who waits. When the filter leaves one lock, it is answered for in full. */
export function LocksView({ snapshot, route, isPaused, onUnlock }: ViewProps) {
  const { held, waiting, filter } = snapshot;
  // The rows may still be those of another filter. The app looks in lower case.
  const isAnswered = filter === route.filter.toLowerCase();
  const only = filter === '' ? undefined : onlyOf(held.items);
  return (
    <>
      {only && (
        <Answer
          title={<KeyLink name={only.key} />}
          holder={only}
          firstWaiter={waiting.items.find(({ key }) => key === only.key)}
          snapshot={snapshot}
          onUnlock={onUnlock}
        />
      )}
      <HeldTable
        title="Held"
        rows={held.items}
        nothing={isAnswered ? <NothingFound typed={route.filter} /> : lookingFor('it', isPaused)}
        note={cutNote(held, 'held longest')}
      />
      <WaitingTable
        title="Waiting"
        rows={waiting.items}
        nothing={isAnswered ? nobodyWaits(route.filter) : lookingFor('it', isPaused)}
        note={cutNote(waiting, 'that wait longest')}
      />
    </>
  );
}

const nobodyWaits = (filter: string): string =>
  filter === '' ? 'Nobody waits.' : `Nobody waits for a key that has “${filter}” in it.`;

/** A key that no process claims can be found by its whole name only. */
function NothingFound({ typed }: { readonly typed: string }) {
  if (typed === '') return <>No lock is held now.</>;
  return (
    <>
      No process holds a lock that has “{typed}” in it. Is that the whole key?{' '}
      <a href={hashOf({ view: 'key', key: typed })}>Ask the lock server</a>
    </>
  );
}

function onlyOf(rows: readonly HeldRow[]): HeldRow | undefined {
  return rows.length === 1 ? rows[0] : undefined;
}
