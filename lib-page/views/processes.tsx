import type { ProcessRow, ServerState } from '../../lib/page/page-snapshot.js';
import { Age } from '../parts/age.js';
import { count, duration } from '../parts/format.js';
import { Table, type Column } from '../parts/table.js';
import type { ViewProps } from './view-props.js';

/** The server that keeps the locks, and the processes of the app. */
export function ProcessesView({ snapshot: { server, processes } }: ViewProps) {
  return (
    <>
      <Server server={server} />
      <Table
        title="Processes"
        columns={COLUMNS}
        rows={processes}
        id={({ id }) => id}
        nothing="No process is known."
        note="lease margin: the least that was left of a lease when it was renewed, in the last minute"
      />
    </>
  );
}

function Server({
  server: { isUp, up, of, errors, problems, checkedAgoMs, downForMs, unreached },
}: {
  readonly server: ServerState;
}) {
  return (
    <section class="card stack">
      <h2>Lock server</h2>
      <p>
        <b class={isUp ? 'good' : 'bad'}>{isUp ? 'Up' : 'Down'}</b>
        {downForMs !== null && (
          <>
            {' '}
            for <Age ms={downForMs} />
          </>
        )}
        {of > 1 && `: ${up} of ${of} nodes grant locks`}
        <span class="muted">
          , checked <Age ms={checkedAgoMs} /> ago
        </span>
      </p>
      <Sentences title="Errors" texts={errors} />
      <Sentences title="Problems" texts={problems} />
      <Sentences title="Not reached: rows may be missing or old" texts={unreached} />
    </section>
  );
}

function Sentences({ title, texts }: { readonly title: string; readonly texts: readonly string[] }) {
  if (texts.length === 0) return null;
  return (
    <div>
      <h3>{title}</h3>
      <ul>
        {texts.map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
    </div>
  );
}

/** Below this share of the lease, a short stall loses the lock. */
const SMALL_SHARE = 0.3;

const COLUMNS: readonly Column<ProcessRow>[] = [
  {
    title: 'Process',
    by: ({ id }) => id,
    cell: ({ host, pid, isThis, hasPage, isSilent, silentMs }) => (
      <>
        {host}:{pid}
        {isThis && <small>answers this page</small>}
        {!hasPage && !isSilent && <small>without LockPageModule</small>}
        {isSilent && (
          <small class="bad">
            has not answered for <Age ms={silentMs} />
          </small>
        )}
      </>
    ),
  },
  {
    title: 'Up for',
    isNumber: true,
    by: ({ uptimeMs }) => uptimeMs,
    cell: ({ uptimeMs }) => (uptimeMs === null ? <Untold /> : <Age ms={uptimeMs} />),
  },
  { title: 'Holds', isNumber: true, by: ({ held }) => held, cell: ({ held }) => countOrUntold(held) },
  { title: 'Waits', isNumber: true, by: ({ waiting }) => waiting, cell: ({ waiting }) => countOrUntold(waiting) },
  {
    title: 'Locks per second',
    isNumber: true,
    by: ({ acquiredPerSecond }) => acquiredPerSecond,
    cell: ({ acquiredPerSecond: rate }) => (rate === null ? <Untold /> : rate < 10 ? rate.toFixed(1) : count(rate)),
  },
  {
    title: 'Lost in the last hour',
    isNumber: true,
    by: ({ lostInLastHour }) => lostInLastHour,
    cell: ({ lostInLastHour }) => <span class={lostInLastHour ? 'bad' : ''}>{countOrUntold(lostInLastHour)}</span>,
  },
  {
    title: 'Lease margin',
    isNumber: true,
    by: ({ leaseMargin }) => leaseMargin?.shareOfLease ?? null,
    cell: ({ leaseMargin, hasPage }) => (hasPage ? <Margin margin={leaseMargin} /> : <Untold />),
  },
];

/** Stands for what only a process with `LockPageModule` counts, or what one has not answered. */
function Untold() {
  return <span class="muted">–</span>;
}

const countOrUntold = (value: number | null) => (value === null ? <Untold /> : count(value));

function Margin({ margin }: { readonly margin: ProcessRow['leaseMargin'] }) {
  if (!margin) return <span class="muted">no renewals</span>;
  return (
    <span class={margin.shareOfLease < SMALL_SHARE ? 'warn' : ''}>
      {duration(margin.ms)}
      <small>{Math.round(margin.shareOfLease * 100)} % of the lease</small>
    </span>
  );
}
