import type { FeedState } from '../feed/feed-state.js';
import { hashOf, type View } from '../feed/route.js';
import { Age } from '../parts/age.js';

interface NoticesProps {
  readonly state: FeedState;
  /** What became of the last action. */
  readonly outcome: string;
  readonly view: View;
}

/** What everybody has to know, whatever they look at. */
export function Notices({ state: { status, refusal, snapshot }, outcome, view }: NoticesProps) {
  return (
    <section class="notices" aria-label="Notices">
      {outcome !== '' && <p class="notice">{outcome}</p>}
      {status === 'away' && (
        <p class="notice bad">
          {snapshot ? 'The app does not answer. What you see is the last that it told.' : 'The app does not answer.'}{' '}
          Trying again…
        </p>
      )}
      {status === 'refused' && (
        <p class="notice bad">
          {refusal}{' '}
          <button type="button" onClick={() => location.reload()}>
            Reload
          </button>
        </p>
      )}
      {snapshot && !snapshot.server.isUp && (
        <p class="notice bad">
          The lock server is down
          {snapshot.server.downForMs !== null && (
            <>
              {' '}
              for <Age ms={snapshot.server.downForMs} />
            </>
          )}
          : no lock can be acquired. The rows are what one process of the app knows.{' '}
          <a href={hashOf({ view: 'processes' })}>What it says</a>
        </p>
      )}
      {snapshot && snapshot.server.isUp && snapshot.server.problems.length + snapshot.server.unreached.length > 0 && (
        <p class="notice">
          {[...snapshot.server.problems, ...snapshot.server.unreached].join(' ')}{' '}
          <a href={hashOf({ view: 'processes' })}>Details</a>
        </p>
      )}
      {snapshot && snapshot.waitGraph.cycles.length > 0 && view !== 'waits' && (
        <p class="notice bad">
          Calls wait for each other in a circle. <a href={hashOf({ view: 'waits' })}>Show the deadlock</a>
        </p>
      )}
    </section>
  );
}
