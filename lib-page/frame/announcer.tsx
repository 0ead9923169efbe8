import { useEffect, useRef, useState } from 'preact/hooks';
import type { FeedState } from '../feed/feed-state.js';
import { many } from '../parts/format.js';

interface AnnouncerProps {
  readonly state: FeedState;
  readonly outcome: string;
}

/** Tells those who can't see it what changed for good or bad: nothing else speaks by itself. */
export function Announcer({ state, outcome }: AnnouncerProps) {
  const [text, setText] = useState('');
  const before = useRef(state);
  useEffect(() => {
    const news = newsOf(before.current, state);
    if (news !== '') setText(news);
    before.current = state;
  }, [state]);
  useEffect(() => {
    if (outcome !== '') setText(outcome);
  }, [outcome]);
  return (
    <div class="hidden" role="status">
      {text}
    </div>
  );
}

function newsOf(before: FeedState, { status, snapshot }: FeedState): string {
  const was = before.snapshot;
  const news: string[] = [];
  if (status !== before.status) news.push(STATUS_NEWS[status] ?? '');
  if (was && snapshot) {
    if (was.server.isUp !== snapshot.server.isUp)
      news.push(`The lock server is ${snapshot.server.isUp ? 'up again' : 'down'}.`);
    const lost = snapshot.totals.lostInLastHour - was.totals.lostInLastHour;
    if (lost > 0) news.push(`${many(lost, 'lock was', 'locks were')} lost.`);
    if (snapshot.waitGraph.cycles.length > was.waitGraph.cycles.length) news.push('There is a new deadlock.');
  }
  return news.join(' ').trim();
}

const STATUS_NEWS: Partial<Record<FeedState['status'], string>> = {
  live: 'The data is live.',
  polling: 'The data comes by polling.',
  away: 'The app does not answer.',
  refused: 'The app refuses to tell.',
};
