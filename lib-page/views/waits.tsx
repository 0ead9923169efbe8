import type { WaitGraph, WaitingCall } from '../../lib/page/page-snapshot.js';
import { Age } from '../parts/age.js';
import { CallerName, KeyLink, nameOf, processOf } from '../parts/caller.js';
import { many } from '../parts/format.js';
import { Graph } from '../parts/graph.js';
import { Table, type Column } from '../parts/table.js';
import { cutNote } from './cut-note.js';
import type { ViewProps } from './view-props.js';
import { Keys } from './waiting-table.js';

/** Who waits for whom: deadlocks in words, all chains as a graph, and the calls as a table. */
export function WaitsView({ snapshot: { waitGraph } }: ViewProps) {
  const { calls, cycles } = waitGraph;
  return (
    <>
      {cycles.length > 0 && <Deadlocks graph={waitGraph} />}
      <section class="card stack">
        <h2>Graph</h2>
        <Graph graph={waitGraph} />
      </section>
      <Table
        title="Calls that hold a key and wait for another"
        columns={COLUMNS}
        rows={calls.items}
        id={({ id }) => id}
        nothing="No call holds a key while it waits for another, so there is no deadlock."
        note={cutNote(calls, 'that wait longest', '')}
      />
    </>
  );
}

function Deadlocks({ graph: { calls, cycles, edges } }: { readonly graph: WaitGraph }) {
  const byId = new Map(calls.items.map((call) => [call.id, call]));
  const keyOf = (from: string) => edges.find((edge) => edge.from === from && edge.isInCycle)?.key;
  return (
    <section class="card stack">
      <h2 class="bad">{cycles.length === 1 ? 'A deadlock' : `${cycles.length} deadlocks`}</h2>
      <p>
        These calls wait for each other in a circle. The first of them to give up, after its “wait”, frees the others.
        Lock all keys in one call, or always in the same order, and it does not happen.
      </p>
      {cycles.map((cycle) => (
        <ol key={cycle.join()}>
          {cycle.map((id) => (
            <li key={id}>
              <Step call={byId.get(id)} waitsFor={keyOf(id)} />
            </li>
          ))}
        </ol>
      ))}
    </section>
  );
}

function Step({ call, waitsFor }: { readonly call: WaitingCall | undefined; readonly waitsFor: string | undefined }) {
  if (!call) return <>a call beyond the end of the list</>;
  return (
    <>
      <b>
        <bdi>{nameOf(call)}</bdi>
      </b>{' '}
      on {processOf(call)} holds <Keys names={call.holds} /> and waits for{' '}
      {waitsFor === undefined ? many(call.waitsFor.length, 'key') : <KeyLink name={waitsFor} />}, for{' '}
      <Age ms={call.waitingMs} />
    </>
  );
}

const COLUMNS: readonly Column<WaitingCall>[] = [
  { title: 'Call', by: nameOf, cell: (row) => <CallerName who={row} /> },
  { title: 'Holds', isWide: true, cell: ({ holds }) => <Keys names={holds} /> },
  { title: 'Waits for', isWide: true, cell: ({ waitsFor }) => <Keys names={waitsFor} /> },
  { title: 'For', isNumber: true, by: ({ waitingMs }) => waitingMs, cell: ({ waitingMs }) => <Age ms={waitingMs} /> },
];
