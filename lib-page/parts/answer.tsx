import type { ComponentChildren } from 'preact';
import type { HeldRow, PageSnapshot, WaitingRow } from '../../lib/page/page-snapshot.js';
import { adviceOn } from './advice.js';
import { Age, LeaseLeft, Unknown } from './age.js';
import { nameOf, processOf, TraceId } from './caller.js';
import { many } from './format.js';

interface AnswerProps {
  readonly title: ComponentChildren;
  /** The only holder of the key. */
  readonly holder: HeldRow;
  /** Who waits for it longest. */
  readonly firstWaiter: WaitingRow | undefined;
  readonly snapshot: PageSnapshot;
  /** Asks to take the lock away. Undefined where that is not allowed. */
  readonly onUnlock: ((holder: HeldRow) => void) | undefined;
}

/** Answers the question of the night: who holds it, since when, who waits, and may I take it away? */
export function Answer({ title, holder, firstWaiter, snapshot, onUnlock }: AnswerProps) {
  const { verdict, reasons } = adviceOn(holder, holder.waiters, snapshot);
  return (
    <section class="card answer stack" aria-labelledby="answer">
      <h2 id="answer">{title}</h2>
      <p class="sentence">
        {holder.isKept ? 'Kept for' : 'Held by'} <b>{<bdi>{nameOf(holder)}</bdi>}</b>
        {holder.host !== null && (
          <>
            {' '}
            on <b>{processOf(holder)}</b>
          </>
        )}
        {holder.heldMs !== null && (
          <>
            {' '}
            for{' '}
            <b>
              <Age ms={holder.heldMs} />
            </b>
          </>
        )}
        . {waitersOf(holder, firstWaiter)}
      </p>
      <dl class="facts">
        <Fact name="Lease left">
          <LeaseLeft ms={holder.leaseLeftMs} />
        </Fact>
        <Fact name="Fence">{holder.fence ?? <Unknown />}</Fact>
        <Fact name="Mode">{holder.mode}</Fact>
        {holder.template !== null && (
          <Fact name="Template">
            <code>{holder.template}</code>
          </Fact>
        )}
        {holder.traceId !== null && (
          <Fact name="Trace id">
            <TraceId id={holder.traceId} />
          </Fact>
        )}
      </dl>
      <div class="advice stack">
        <h3>May I take it away?</h3>
        <p>{verdict}</p>
        <ul>
          {reasons.map((reason) => (
            <li key={reason}>{reason}</li>
          ))}
        </ul>
        {onUnlock && isShownInFull(holder) && (
          <div class="actions">
            <button type="button" class="danger" onClick={() => onUnlock(holder)}>
              Take it away…
            </button>
          </div>
        )}
      </div>
    </section>
  );
}

/** The app shows only a part of a very long key, so nobody could type it. */
function isShownInFull({ key, keyLength }: HeldRow): boolean {
  return keyLength === key.length;
}

function waitersOf({ waiters }: HeldRow, first: WaitingRow | undefined) {
  if (waiters === 0) return 'Nobody waits for it.';
  const verb = waiters === 1 ? 'waits' : 'wait';
  if (!first) return `${many(waiters, 'caller')} ${verb} for it.`;
  return (
    <>
      {many(waiters, 'caller')} {verb} for it, the longest for{' '}
      <b>
        <Age ms={first.waitingMs} />
      </b>
      : <bdi>{nameOf(first)}</bdi>
      {first.host !== null && <> on {processOf(first)}</>}.
    </>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
