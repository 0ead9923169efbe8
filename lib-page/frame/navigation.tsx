import type { PageSnapshot } from '../../lib/page/page-snapshot.js';
import { hashOf, VIEWS, type Route } from '../feed/route.js';
import { count } from '../parts/format.js';

const TITLES = { locks: 'Locks', waits: 'Deadlocks', times: 'Times', lost: 'Lost', processes: 'Processes' };

interface NavigationProps {
  readonly route: Route;
  readonly snapshot: PageSnapshot | undefined;
}

/** Leads to the views, with the number that each is about. The filter goes along. */
export function Navigation({ route, snapshot }: NavigationProps) {
  return (
    <nav aria-label="Views">
      <ul>
        {VIEWS.map((view) => (
          <li key={view}>
            <a href={hashOf({ view, filter: route.filter })} aria-current={view === route.view ? 'page' : undefined}>
              {TITLES[view]} {snapshot && <NumberOf view={view} snapshot={snapshot} />}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function NumberOf({
  view,
  snapshot: { totals, waitGraph },
}: {
  readonly view: string;
  readonly snapshot: PageSnapshot;
}) {
  if (view === 'locks')
    return (
      <span class="number">
        {count(totals.held)} held, {count(totals.waiting)} waiting
      </span>
    );
  if (view === 'times') return <span class="number">{count(totals.acquiredPerSecond)}/s</span>;
  if (view === 'processes') return <span class="number">{count(totals.processes)}</span>;
  const trouble = view === 'lost' ? totals.lostInLastHour : waitGraph.cycles.length;
  return <span class={`number${trouble > 0 ? ' bad' : ''}`}>{count(trouble)}</span>;
}
