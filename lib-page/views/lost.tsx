import type { LossRow } from '../../lib/page/page-snapshot.js';
import { Age } from '../parts/age.js';
import { CallerName, KeyLink } from '../parts/caller.js';
import { count, duration } from '../parts/format.js';
import { Table, type Column } from '../parts/table.js';
import type { ViewProps } from './view-props.js';

const MEANINGS: Readonly<Record<string, string>> = {
  expired: 'The lease ended before a renewal got through: the process was stalled, or Redis was away.',
  taken: 'Redis had another holder, or none: its data was lost, or the key was deleted.',
  shutdown: 'The app shut down before the work was done.',
  unlocked: 'The work released the lock itself, and went on.',
  forced: 'Somebody took it away with forceUnlock.',
};

/** The locks that ended while their callers were inside. */
export function LostView({ snapshot: { losses } }: ViewProps) {
  const reasons = Object.entries(losses.byReason);
  return (
    <>
      {reasons.length > 0 && (
        <section class="card">
          <h2>Reasons</h2>
          <dl class="reasons">
            {reasons.map(([reason, times]) => (
              <div key={reason}>
                <dt>
                  {reason} <b>{count(times)}</b>
                </dt>
                <dd class="muted">{MEANINGS[reason]}</dd>
              </div>
            ))}
          </dl>
        </section>
      )}
      <Table
        title="Lost in the last hour"
        columns={COLUMNS}
        rows={losses.items}
        id={({ key, fence }) => `${fence} ${key}`}
        nothing="No lock was lost in the last hour."
        note={
          losses.items.length < losses.total
            ? `the latest ${count(losses.items.length)} of ${count(losses.total)}`
            : undefined
        }
      />
    </>
  );
}

const COLUMNS: readonly Column<LossRow>[] = [
  { title: 'Key', by: ({ key }) => key, cell: ({ key }) => <KeyLink name={key} /> },
  {
    title: 'Lost',
    isNumber: true,
    by: ({ agoMs }) => agoMs,
    cell: ({ agoMs }) => (
      <>
        <Age ms={agoMs} /> ago
      </>
    ),
  },
  {
    title: 'Reason',
    by: ({ reason }) => reason,
    cell: ({ reason, by, why }) => <Reason reason={reason} by={by} why={why} />,
  },
  { title: 'Who held it', isWide: true, cell: (row) => <CallerName who={row} /> },
  { title: 'Held for', isNumber: true, by: ({ heldMs }) => heldMs, cell: ({ heldMs }) => duration(heldMs) },
  { title: 'Fence', isNumber: true, cell: ({ fence }) => fence },
];

function Reason({ reason, by, why }: Pick<LossRow, 'reason' | 'by' | 'why'>) {
  return (
    <>
      {reason}
      {(by !== null || why !== null) && <small>{[by && `by ${by}`, why].filter(Boolean).join(': ')}</small>}
    </>
  );
}
