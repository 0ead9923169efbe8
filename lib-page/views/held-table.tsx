import type { ComponentChildren } from 'preact';
import type { HeldRow } from '../../lib/page/page-snapshot.js';
import { Age, LeaseLeft, Unknown } from '../parts/age.js';
import { CallerName, KeyLink, nameOf, TraceId } from '../parts/caller.js';
import { count } from '../parts/format.js';
import { Table, type Column } from '../parts/table.js';

interface HeldTableProps {
  readonly title: string;
  readonly rows: readonly HeldRow[];
  readonly nothing: ComponentChildren;
  readonly note?: ComponentChildren;
  /** Adds a button to each row. Undefined where locks may not be taken away. */
  readonly onUnlock?: ((holder: HeldRow) => void) | undefined;
}

export function HeldTable({ title, rows, nothing, note, onUnlock }: HeldTableProps) {
  const columns = onUnlock ? [...COLUMNS, unlockColumn(onUnlock)] : COLUMNS;
  return <Table title={title} columns={columns} rows={rows} id={idOf} nothing={nothing} note={note} />;
}

function idOf({ key, process, fence, tokenHash }: HeldRow): string {
  return `${process} ${fence ?? tokenHash} ${key}`;
}

const COLUMNS: readonly Column<HeldRow>[] = [
  { title: 'Key', by: ({ key }) => key, cell: ({ key, mode }) => <KeyCell name={key} mode={mode} /> },
  { title: 'Held by', by: nameOf, isWide: true, cell: (row) => <Holder row={row} /> },
  {
    title: 'Held for',
    isNumber: true,
    by: ({ heldMs }) => heldMs,
    cell: ({ heldMs, isOverdue }) => (
      <>
        <Age ms={heldMs} />
        {isOverdue && <small class="warn">overdue</small>}
      </>
    ),
  },
  {
    title: 'Lease left',
    isNumber: true,
    by: ({ leaseLeftMs }) => leaseLeftMs,
    cell: ({ leaseLeftMs }) => <LeaseLeft ms={leaseLeftMs} />,
  },
  { title: 'Waiting', isNumber: true, by: ({ waiters }) => waiters, cell: ({ waiters }) => count(waiters) },
  { title: 'Fence', isNumber: true, by: ({ fence }) => fence, cell: ({ fence }) => fence ?? <Unknown /> },
  {
    title: 'Trace id',
    isWide: true,
    isEmpty: ({ traceId }) => traceId === null,
    cell: ({ traceId }) => <TraceId id={traceId} />,
  },
];

function Holder({ row }: { readonly row: HeldRow }) {
  return (
    <>
      <CallerName who={row} />
      {row.isKept && <small>its work is done</small>}
      {row.isSilent && <small class="bad">its process does not answer</small>}
    </>
  );
}

function KeyCell({ name, mode }: { readonly name: string; readonly mode: string }) {
  return (
    <>
      <KeyLink name={name} />
      {mode !== 'exclusive' && <small>{mode}</small>}
    </>
  );
}

function unlockColumn(onUnlock: (holder: HeldRow) => void): Column<HeldRow> {
  return {
    title: 'Action',
    cell: (row) => (
      <button
        type="button"
        class="danger"
        onClick={() => onUnlock(row)}
        aria-label={`Take ${row.key} away from ${nameOf(row)}…`}
      >
        Take away…
      </button>
    ),
  };
}
