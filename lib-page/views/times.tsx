import { useState } from 'preact/hooks';
import type { HotKey, LabelRow, PageSnapshot } from '../../lib/page/page-snapshot.js';
import { KeyLink } from '../parts/caller.js';
import { count, duration } from '../parts/format.js';
import { Plot } from '../parts/plot.js';
import { Table, type Column } from '../parts/table.js';
import { cutNote } from './cut-note.js';
import type { ViewProps } from './view-props.js';

/** How many labels have plots before somebody asks for all. */
const PLOTTED_FIRST = 4;

/** Which lock makes us slow: the times by label, in numbers and plots, and the keys that most callers want. */
export function TimesView({ snapshot }: ViewProps) {
  const { labels, slots, hotKeys } = snapshot;
  const minutes = Math.round((slots.stepMs * slots.count) / 60_000);
  return (
    <>
      <Table
        title={`Times of the last ${minutes} minutes, by label`}
        columns={LABELS}
        rows={labels.items}
        id={({ label }) => label}
        nothing="No lock was asked for in these minutes."
        note={cutNote(labels, 'that waited longest in all', '')}
      />
      <Plots snapshot={snapshot} />
      <Table
        title="Hottest keys of the last 5 minutes"
        columns={HOT_KEYS}
        rows={hotKeys}
        id={({ key }) => key}
        nothing="No lock was asked for in these minutes."
        note="by how long their callers waited, all together"
      />
    </>
  );
}

function Plots({ snapshot: { labels, slots } }: { readonly snapshot: PageSnapshot }) {
  const [areAllShown, setAllShown] = useState(false);
  const plotted = labels.items.filter(({ wait, hold }) => wait.series.p99.length + hold.series.p99.length > 0);
  if (plotted.length === 0) return null;
  const shown = areAllShown ? plotted : plotted.slice(0, PLOTTED_FIRST);
  return (
    <section class="card stack">
      <div class="heading">
        <h2>Plots</h2>
        <p class="muted">
          <span class="swatch">p50</span> <span class="swatch second">p99</span>, in steps of {duration(slots.stepMs)}
        </p>
      </div>
      {shown.map(({ label, wait, hold }) => (
        <div key={label}>
          <h3>
            <bdi>{label}</bdi>
          </h3>
          <div class="plots">
            <Plot title="wait" of={label} slots={slots} times={wait} />
            <Plot title="hold" of={label} slots={slots} times={hold} />
          </div>
        </div>
      ))}
      {plotted.length > PLOTTED_FIRST && (
        <div class="actions">
          <button type="button" aria-expanded={areAllShown} onClick={() => setAllShown(!areAllShown)}>
            {areAllShown ? 'Show fewer plots' : `Show ${plotted.length - PLOTTED_FIRST} more`}
          </button>
        </div>
      )}
    </section>
  );
}

const time = (ms: number | null) => (ms === null ? '–' : duration(ms));

const LABELS: readonly Column<LabelRow>[] = [
  { title: 'Label', by: ({ label }) => label, cell: ({ label }) => <bdi>{label}</bdi> },
  { title: 'Acquired', isNumber: true, by: ({ acquired }) => acquired, cell: ({ acquired }) => count(acquired) },
  { title: 'Wait p50', isNumber: true, by: ({ wait }) => wait.p50, cell: ({ wait }) => time(wait.p50) },
  { title: 'Wait p99', isNumber: true, by: ({ wait }) => wait.p99, cell: ({ wait }) => time(wait.p99) },
  { title: 'Hold p50', isNumber: true, by: ({ hold }) => hold.p50, cell: ({ hold }) => time(hold.p50) },
  { title: 'Hold p99', isNumber: true, by: ({ hold }) => hold.p99, cell: ({ hold }) => time(hold.p99) },
  { title: 'Timed out', isNumber: true, by: ({ timeouts }) => timeouts, cell: ({ timeouts }) => count(timeouts) },
  {
    title: 'No server',
    isNumber: true,
    by: ({ unavailable }) => unavailable,
    cell: ({ unavailable }) => count(unavailable),
  },
  { title: 'Aborted', isNumber: true, by: ({ aborted }) => aborted, cell: ({ aborted }) => count(aborted) },
  {
    title: 'Lost',
    isNumber: true,
    by: ({ lost }) => lost,
    cell: ({ lost }) => <span class={lost > 0 ? 'bad' : ''}>{count(lost)}</span>,
  },
];

const HOT_KEYS: readonly Column<HotKey>[] = [
  { title: 'Key', by: ({ key }) => key, cell: ({ key }) => <KeyLink name={key} /> },
  { title: 'Label', by: ({ label }) => label, isWide: true, cell: ({ label }) => <bdi>{label ?? '–'}</bdi> },
  {
    title: 'Waited in all',
    isNumber: true,
    by: ({ waitedMs }) => waitedMs,
    cell: ({ waitedMs }) => duration(waitedMs),
  },
  { title: 'Acquired', isNumber: true, by: ({ acquired }) => acquired, cell: ({ acquired }) => count(acquired) },
  { title: 'Timed out', isNumber: true, by: ({ timeouts }) => timeouts, cell: ({ timeouts }) => count(timeouts) },
];
