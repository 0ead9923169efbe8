import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { HeldRow, PageSnapshot } from '../lib/page/page-snapshot.js';
import { Announcer } from './frame/announcer.js';
import { FeedLine, STALE_MS } from './frame/feed-line.js';
import { FilterField } from './frame/filter-field.js';
import { Navigation } from './frame/navigation.js';
import { Notices } from './frame/notices.js';
import { useFocusKept } from './frame/use-focus-kept.js';
import { useFeed } from './frame/use-feed.js';
import { useRoute } from './frame/use-route.js';
import { hasFilter, hashOf, type View } from './feed/route.js';
import { Moment } from './parts/moment.js';
import { UnlockDialog } from './parts/unlock-dialog.js';
import { KeyView } from './views/key.js';
import { LocksView } from './views/locks.js';
import { LostView } from './views/lost.js';
import { ProcessesView } from './views/processes.js';
import { TimesView } from './views/times.js';
import type { ViewProps } from './views/view-props.js';
import { WaitsView } from './views/waits.js';

const VIEWS: Record<View, (props: ViewProps) => JSX.Element> = {
  locks: LocksView,
  waits: WaitsView,
  times: TimesView,
  lost: LostView,
  processes: ProcessesView,
  key: KeyView,
};

export function App() {
  const [route, go] = useRoute();
  const { state, elapsedMs, isPaused, setPaused } = useFeed(route);
  const [asked, setAsked] = useState<HeldRow | undefined>();
  const [outcome, setOutcome] = useState('');
  const main = useFocusKept<HTMLElement>();
  const { snapshot } = state;
  const heldNow = asked && rowNow(asked, snapshot);
  const ViewOfRoute = VIEWS[route.view];

  useEffect(() => {
    const name = !snapshot || snapshot.module === 'default' ? 'Locks' : `Locks of ${snapshot.module}`;
    document.title = route.view === 'key' ? `${route.key} · ${name}` : name;
  }, [route, snapshot?.module]);
  useEffect(() => setOutcome(''), [route]);

  return (
    <Moment.Provider value={Math.min(elapsedMs, STALE_MS)}>
      <div class="frame">
        <button type="button" class="skip" onClick={() => main.current?.focus()}>
          Skip to the content
        </button>
        <header>
          <div class="top">
            <h1>
              <a href={hashOf({ view: 'locks' })}>
                {snapshot && snapshot.module !== 'default' ? `Locks of ${snapshot.module}` : 'Locks'}
              </a>
            </h1>
            <FeedLine state={state} elapsedMs={elapsedMs} isPaused={isPaused} onPause={setPaused} />
          </div>
          <Navigation route={route} snapshot={snapshot} />
        </header>
        <Notices state={state} outcome={outcome} view={route.view} />
        <main ref={main} tabIndex={-1}>
          {hasFilter(route) && (
            <FilterField
              route={route}
              onFilter={(filter) => go({ view: route.view === 'key' ? 'locks' : route.view, filter })}
            />
          )}
          {snapshot ? (
            <ViewOfRoute
              snapshot={snapshot}
              route={route}
              isPaused={isPaused}
              onUnlock={snapshot.actions ? setAsked : undefined}
            />
          ) : (
            <p class="muted">Asking the app…</p>
          )}
        </main>
        <Announcer state={state} outcome={outcome} />
        {asked && (
          <UnlockDialog
            holder={heldNow ?? asked}
            isHeld={heldNow !== undefined}
            onClose={(text) => {
              setAsked(undefined);
              setOutcome(text);
            }}
          />
        )}
      </div>
    </Moment.Provider>
  );
}

/** The row of a lock in the latest data; undefined when its holder has it no longer. */
function rowNow({ key, fence, tokenHash, process }: HeldRow, snapshot: PageSnapshot | undefined): HeldRow | undefined {
  const rows = [...(snapshot?.held.items ?? []), ...(snapshot?.key?.holders.items ?? [])];
  const same = (row: HeldRow) => row.key === key && row.fence === fence && row.process === process;
  return rows.find((row) => same(row) && row.tokenHash === tokenHash);
}
