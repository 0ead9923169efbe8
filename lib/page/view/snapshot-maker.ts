import type { KeyView as StoredKey } from '../../store/lock-store.js';
import type { PageSnapshot } from '../page-snapshot.js';
import { doubtfulRows, sourcesOf } from './doubtful.js';
import { keyViewOf } from './key-view.js';
import type { View } from './live-snapshots.js';
import type { KnownProcess } from './process-book.js';
import type { ProcessesWatch } from './processes-watch.js';
import type { ServerWatch } from './server-watch.js';
import { commonParts, snapshotOf } from './snapshot.js';

/** What a snapshot is made from. */
export interface SnapshotSources {
  readonly module: string;
  readonly actions: boolean;
  /** The source of this process. */
  readonly own: string;
  readonly processes: ProcessesWatch;
  readonly server: ServerWatch;
  /** Reads a key from the store; undefined when it is free. Rejects when the store does not answer. */
  readonly inspect: (key: string) => Promise<StoredKey | undefined>;
}

/** Makes the snapshots of all views at one moment, with one round of questions for all of them. */
export async function makeSnapshots(
  { module, actions, own, processes: watch, server, inspect }: SnapshotSources,
  views: readonly View[],
): Promise<readonly PageSnapshot[]> {
  const filters = [...new Set(views.map(({ filter }) => filter))];
  const keys = [...new Set(views.flatMap(({ key }) => (key === undefined ? [] : [key])))];
  const [{ processes, unreached }, state, stored] = await Promise.all([
    watch.ask({ filters, keys }),
    server.state(),
    Promise.all(keys.map((key) => storedKey(key, inspect))),
  ]);
  const doubtful = await doubtfulRows(processes, inspect);
  const common = commonParts({
    ...{ at: Date.now(), module, actions, own, doubtful },
    ...{ server: { ...state, unreached }, processes, times: watch.times },
  });
  const keyViews = keys.map((key, at) =>
    keyViewOf(key, {
      stored: stored[at],
      answering: sourcesOf(processes),
      calls: partsOf(processes, ({ calls, asked }) => calls?.byKey[asked.keys.indexOf(key)]),
      histories: partsOf(processes, ({ report, asked }) => report?.histories[asked.keys.indexOf(key)]),
    }),
  );
  return views.map(({ filter, key }) =>
    snapshotOf(common, {
      filter,
      calls: partsOf(processes, ({ calls, asked }) => calls?.byText[asked.filters.indexOf(filter)]),
      past: partsOf(processes, ({ report, asked }) => report?.byFilter[asked.filters.indexOf(filter)]),
      key: key === undefined ? null : keyViews[keys.indexOf(key)]!,
    }),
  );
}

/** What the store says of a key: null when it is free, undefined when that can't be known. */
async function storedKey(key: string, inspect: SnapshotSources['inspect']): Promise<StoredKey | null | undefined> {
  return inspect(key).then(
    (stored) => stored ?? null,
    () => undefined,
  );
}

/** A process that was silent before a view was opened has said nothing for it. */
function partsOf<Part>(
  processes: readonly KnownProcess[],
  partOf: (process: KnownProcess) => Part | undefined,
): { readonly process: KnownProcess; readonly part: Part }[] {
  return processes.flatMap((process) => {
    const part = partOf(process);
    return part ? [{ process, part }] : [];
  });
}
