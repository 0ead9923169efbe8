import { useEffect, useRef, useState } from 'preact/hooks';
import type { FeedState } from '../feed/feed-state.js';
import { LiveFeed } from '../feed/live-feed.js';
import { wantedAt, type Route } from '../feed/route.js';

const TICK_MS = 1_000;
/** How long typing rests before the app is asked for other rows. */
const REST_MS = 250;
const NOTHING_YET: FeedState = { status: 'connecting', snapshot: undefined, receivedAt: 0, refusal: '' };

/** The latest data, and how old it is. */
export interface Feed {
  readonly state: FeedState;
  /** How old it is, in ms; 0 while the reader has paused it. */
  readonly elapsedMs: number;
  readonly isPaused: boolean;
  readonly setPaused: (isPaused: boolean) => void;
}

/** Keeps the feed running while somebody looks, with the rows that the address asks for. */
export function useFeed(route: Route): Feed {
  const { filter, key } = wantedAt(route);
  const [state, setState] = useState(NOTHING_YET);
  const [now, setNow] = useState(() => performance.now());
  const [isPaused, setPaused] = useState(false);
  const [isVisible, setVisible] = useState(() => !document.hidden);
  const feed = useRef<LiveFeed | undefined>(undefined);
  feed.current ??= new LiveFeed((state) => {
    setState(state);
    setNow(performance.now());
  });

  useEffect(() => {
    const look = () => setVisible(!document.hidden);
    document.addEventListener('visibilitychange', look);
    return () => document.removeEventListener('visibilitychange', look);
  }, []);
  useEffect(() => {
    if (isPaused) return feed.current!.stop('paused');
    if (!isVisible) return feed.current!.stop();
    const rest = setTimeout(() => feed.current!.start({ filter, key }), feed.current!.isRunning ? REST_MS : 0);
    return () => clearTimeout(rest);
  }, [filter, key, isPaused, isVisible]);
  useEffect(() => {
    const tick = setInterval(() => setNow(performance.now()), TICK_MS);
    return () => clearInterval(tick);
  }, []);

  const elapsedMs = state.status === 'paused' ? 0 : Math.max(0, now - state.receivedAt);
  return { state, elapsedMs, isPaused, setPaused };
}
