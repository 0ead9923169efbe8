import type { KeyEvent, KeyView as KeyFacts } from '../../lib/page/page-snapshot.js';
import { Age } from '../parts/age.js';
import { Answer } from '../parts/answer.js';
import { CallerName } from '../parts/caller.js';
import { duration, many } from '../parts/format.js';
import { Table, type Column } from '../parts/table.js';
import { cutNote } from './cut-note.js';
import { HeldTable } from './held-table.js';
import { lookingFor, type ViewProps } from './view-props.js';
import { WaitingTable } from './waiting-table.js';

/** One key: who holds it, who waits in which order, and what happened to it. */
export function KeyView({ snapshot, route, isPaused, onUnlock }: ViewProps) {
  const facts = snapshot.key;
  if (facts?.key !== route.key) return <p class="muted">{lookingFor('this key', isPaused)}</p>;
  // The app shows no more of such a key, so nobody can type it.
  const onUnlockHere = facts.keyLength === facts.key.length ? onUnlock : undefined;
  const only = facts.holders.total === 1 ? facts.holders.items[0] : undefined;
  return (
    <>
      {only ? (
        <Answer
          title={<bdi class="key">{facts.key}</bdi>}
          holder={only}
          firstWaiter={longest(facts)}
          snapshot={snapshot}
          onUnlock={onUnlockHere}
        />
      ) : (
        <section class="card stack">
          <h2>
            <bdi class="key">{facts.key}</bdi>
          </h2>
          <p>{sentenceOn(facts)}</p>
        </section>
      )}
      {facts.holders.total > 1 && (
        <HeldTable
          title="Holders"
          rows={facts.holders.items}
          nothing="Nobody holds it."
          note={cutNote(facts.holders, 'that hold it longest', '')}
          onUnlock={onUnlockHere}
        />
      )}
      <WaitingTable
        title="Queue"
        rows={facts.waiters.items}
        nothing="Nobody waits for it."
        note={cutNote(facts.waiters, 'that are next', '')}
        isQueue
      />
      <Table
        title="History"
        columns={HISTORY}
        rows={facts.history}
        id={({ type, fence, process, label, waitedMs, heldMs }) =>
          `${type} ${fence} ${process} ${label} ${waitedMs} ${heldMs}`
        }
        nothing="Nothing has happened to it lately."
        note="the latest first"
      />
    </>
  );
}

function longest({ waiters }: KeyFacts) {
  return waiters.items.toSorted((a, b) => b.waitingMs - a.waitingMs)[0];
}

function sentenceOn({ isHeld, mode, permits, holders }: KeyFacts): string {
  if (!isHeld) return 'Nobody holds this key now.';
  const places = permits === null ? '' : ` of ${many(permits, 'permit')}`;
  if (mode === 'read') return `${many(holders.total, 'reader')} share this key.`;
  return `${many(holders.total, 'holder')} share this key${places && `: ${holders.total}${places} are taken`}.`;
}

const HISTORY: readonly Column<KeyEvent>[] = [
  { title: 'What', cell: ({ type, detail }) => <What type={type} detail={detail} /> },
  { title: 'Ago', isNumber: true, cell: ({ agoMs }) => <Age ms={agoMs} /> },
  {
    title: 'Who',
    isWide: true,
    cell: (row) => <CallerName who={row.type === 'forced' ? { ...row, label: 'forceUnlock' } : row} />,
  },
  { title: 'Waited', isNumber: true, cell: ({ waitedMs }) => (waitedMs === null ? '–' : duration(waitedMs)) },
  { title: 'Held', isNumber: true, cell: ({ heldMs }) => (heldMs === null ? '–' : duration(heldMs)) },
  { title: 'Fence', isNumber: true, cell: ({ fence }) => fence ?? '–' },
];

const TROUBLES = ['lost', 'forced', 'unavailable', 'overdue'];

function What({ type, detail }: Pick<KeyEvent, 'type' | 'detail'>) {
  return (
    <>
      <span class={TROUBLES.includes(type) ? 'bad' : ''}>{type}</span>
      {detail !== null && <small>{detail}</small>}
    </>
  );
}
