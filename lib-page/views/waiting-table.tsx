import type { ComponentChildren } from 'preact';
import type { WaitingRow } from '../../lib/page/page-snapshot.js';
import { Age } from '../parts/age.js';
import { CallerName, KeyLink, nameOf, TraceId } from '../parts/caller.js';
import { Table, type Column } from '../parts/table.js';

interface WaitingTableProps {
  readonly title: string;
  readonly rows: readonly WaitingRow[];
  readonly nothing: string;
  readonly note?: ComponentChildren;
  /** Whether the rows are those of one key, in the order in which they will be served. */
  readonly isQueue?: boolean;
}

export function WaitingTable({ title, rows, nothing, note, isQueue = false }: WaitingTableProps) {
  const columns = isQueue ? QUEUE : COLUMNS;
  return <Table title={title} columns={columns} rows={rows} id={idOf} nothing={nothing} note={note} />;
}

/** Rows tell no id: those of one process and label keep their order, which `Table` makes the rest of. */
function idOf({ key, process, label, traceId }: WaitingRow): string {
  return `${process} ${label} ${traceId} ${key}`;
}

const REST: readonly Column<WaitingRow>[] = [
  { title: 'Who waits', by: nameOf, isWide: true, cell: (row) => <CallerName who={row} /> },
  {
    title: 'Waits for',
    isNumber: true,
    by: ({ waitingMs }) => waitingMs,
    cell: ({ waitingMs }) => <Age ms={waitingMs} />,
  },
  { title: 'Mode', by: ({ mode }) => mode, cell: ({ mode }) => mode },
  {
    title: 'Holds meanwhile',
    isWide: true,
    isEmpty: ({ holds }) => holds.length === 0,
    cell: ({ holds }) => <Keys names={holds} />,
  },
  {
    title: 'Trace id',
    isWide: true,
    isEmpty: ({ traceId }) => traceId === null,
    cell: ({ traceId }) => <TraceId id={traceId} />,
  },
];

const COLUMNS: readonly Column<WaitingRow>[] = [
  { title: 'Key', by: ({ key }) => key, cell: ({ key }) => <KeyLink name={key} /> },
  ...REST,
];

const QUEUE: readonly Column<WaitingRow>[] = [{ title: 'Place', cell: ({ place }) => place ?? '–' }, ...REST];

/** Links to several keys. */
export function Keys({ names }: { readonly names: readonly string[] }) {
  if (names.length === 0) return <span class="muted">–</span>;
  return (
    <>
      {names.map((name, index) => (
        <span key={name}>
          {index > 0 && ', '}
          <KeyLink name={name} />
        </span>
      ))}
    </>
  );
}
