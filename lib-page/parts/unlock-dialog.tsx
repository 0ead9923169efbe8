import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { TargetedSubmitEvent } from 'preact';
import type { HeldRow } from '../../lib/page/page-snapshot.js';
import { Refused, unlock } from '../feed/api.js';
import { Age } from './age.js';
import { nameOf, processOf } from './caller.js';

interface UnlockDialogProps {
  /** The lock as it was when the reader asked: only that one is taken away, never its successor's. */
  readonly holder: HeldRow;
  /** Whether it still has the lock, as far as the page knows. */
  readonly isHeld: boolean;
  readonly onClose: (outcome: string) => void;
}

/** Asks to type the key and a reason, and then takes the lock away. */
export function UnlockDialog({ holder, isHeld, onClose }: UnlockDialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const outcome = useRef('');
  const [typedKey, setTypedKey] = useState('');
  const [reason, setReason] = useState('');
  const [problem, setProblem] = useState('');
  const [isBusy, setIsBusy] = useState(false);
  // Before the next key is pressed, which must not go to what is behind it.
  useLayoutEffect(() => dialog.current?.showModal(), []);

  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    setProblem('');
    if (typedKey !== holder.key) return setProblem('This is not the key: type it exactly as it stands above.');
    if (reason.trim() === '') return setProblem('Give a reason: the holder’s error and the log will have it.');
    setIsBusy(true);
    try {
      const { key, fence, tokenHash } = holder;
      const { unlocked } = await unlock({ key, typedKey, fence, tokenHash, reason: reason.trim() });
      outcome.current = unlocked
        ? `${holder.key} was taken away.`
        : `${holder.key} was not taken away: its holder had released it already.`;
      dialog.current?.close();
    } catch (error) {
      setIsBusy(false);
      setProblem(problemOf(error));
    }
  };

  return (
    <dialog ref={dialog} aria-labelledby="unlock-title" onClose={() => onClose(outcome.current)}>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <h2 id="unlock-title">Take this lock away?</h2>
        <p>
          <bdi class="key">{holder.key}</bdi>
        </p>
        <p>
          Held by <b>{<bdi>{nameOf(holder)}</bdi>}</b>
          {holder.host !== null && ` on ${processOf(holder)}`}
          {holder.heldMs !== null && (
            <>
              {' '}
              for <Age ms={holder.heldMs} />
            </>
          )}
          {holder.fence !== null && <>, fence {holder.fence}</>}. The next caller enters at once, even if the work of
          this one still runs.
        </p>
        <label>
          Type the key
          <input
            value={typedKey}
            onInput={(event) => setTypedKey(event.currentTarget.value)}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            required
          />
        </label>
        <label>
          Reason
          <textarea
            value={reason}
            onInput={(event) => setReason(event.currentTarget.value)}
            rows={2}
            maxLength={200}
            required
          />
        </label>
        <p class="bad" role="alert">
          {isHeld ? problem : 'This holder has released it meanwhile, so there is nothing to take away.'}
        </p>
        <div class="actions">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" class="danger filled" disabled={isBusy || !isHeld}>
            Take it away
          </button>
        </div>
      </form>
    </dialog>
  );
}

function problemOf(error: unknown): string {
  if (!(error instanceof Refused))
    return 'The app does not answer. Nothing is known about the lock: look again before you repeat it.';
  if (error.status === 401 || error.status === 403) return error.message || 'You may not do this.';
  return error.message || `The app answers with status ${error.status}.`;
}
