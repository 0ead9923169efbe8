import type { FeedState } from '../feed/feed-state.js';
import { age, timeOfDay } from '../parts/format.js';

/** The data is stale when it is older than this, in ms. */
export const STALE_MS = 6_000;

interface FeedLineProps {
  readonly state: FeedState;
  readonly elapsedMs: number;
  readonly isPaused: boolean;
  readonly onPause: (isPaused: boolean) => void;
}

/** Says how the data arrives and how old it is; and stops it, for those who want to read. */
export function FeedLine({ state, elapsedMs, isPaused, onPause }: FeedLineProps) {
  const { tone, text } = wordsOn(state, elapsedMs);
  return (
    <div class="feed">
      <span class={`feed-state ${tone}`}>{text}</span>
      <button type="button" aria-pressed={isPaused} onClick={() => onPause(!isPaused)}>
        Pause
      </button>
    </div>
  );
}

function wordsOn({ status, snapshot }: FeedState, elapsedMs: number): { tone: string; text: string } {
  const time = snapshot ? timeOfDay(snapshot.at) : '';
  if (status === 'paused') return { tone: 'muted', text: `Paused at ${time}` };
  if (snapshot && elapsedMs > STALE_MS) return { tone: 'bad', text: `Stale: ${age(elapsedMs)} old` };
  if (status === 'live') return { tone: 'good', text: `Live, ${time}` };
  if (status === 'polling') return { tone: 'good', text: `Polling, ${time}` };
  if (status === 'connecting') return { tone: 'muted', text: snapshot ? `Connecting, ${time}` : 'Connecting' };
  return { tone: 'bad', text: status === 'away' ? 'The app does not answer' : 'Refused' };
}
