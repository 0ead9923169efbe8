import { now } from '../../clock/deadline.js';
import { atRoot } from '../../clock/root-context.js';
import { logger } from '../../log/logger.js';

/** For how long a view that was polled is kept up to date, in ms. */
const POLLED_FOR_MS = 5_000;

/** How many different views there may be: each of them is work for every process. */
const MOST_VIEWS = 8;

/**
 * How many may follow at a time: each of them gets every snapshot, which keeps this process from its locks. Others
 * poll.
 */
const MOST_FOLLOWERS = 100;

/** What somebody looks at. */
export interface View {
  /** In lower case. */
  readonly filter: string;
  /** The key to look at; undefined for none. */
  readonly key: string | undefined;
}

/** Makes the snapshots of some views, as JSON, in their order. */
export type MakeSnapshots = (views: readonly View[]) => Promise<readonly string[]>;

/** Somebody who looks at a view. */
export interface Viewer {
  next(snapshot: string): void;
  /** There are no more snapshots: the app shuts down, or none could be made. */
  end(): void;
}

/** A view that somebody looks at. */
interface OpenView extends View {
  readonly viewers: Set<Viewer>;
  polledAt: number;
  latest: { readonly json: string; readonly at: number } | undefined;
}

/** Is thrown when too many different views are open, or too many viewers follow. */
export class TooManyViewsError extends Error {}

/** Makes snapshots once a second for all who look, and only while somebody does. */
export class LiveSnapshots {
  readonly #make: MakeSnapshots;
  readonly #everyMs: number;
  readonly #views = new Map<string, OpenView>();
  readonly #followers = new Set<Viewer>();
  #timer: NodeJS.Timeout | undefined;
  #isMaking = false;
  #madeAt = -Infinity;
  #isClosed = false;

  /** @param everyMs how often snapshots are made at most */
  constructor(make: MakeSnapshots, everyMs: number) {
    this.#make = make;
    this.#everyMs = everyMs;
  }

  /**
   * Passes each snapshot of a view to the viewer, the latest at once if it is no older than a second.
   *
   * @returns a function that ends that
   * @throws TooManyViewsError
   */
  follow(view: View, viewer: Viewer): () => void {
    if (this.#followers.size >= MOST_FOLLOWERS)
      throw new TooManyViewsError('Too many pages are open at the moment. Close another tab, or poll.');
    const stop = this.#show(view, viewer);
    this.#followers.add(viewer);
    return () => {
      stop();
      this.#followers.delete(viewer);
    };
  }

  /**
   * Returns a snapshot that is no older than a second; undefined when the app shuts down, or none could be made.
   *
   * @throws TooManyViewsError
   */
  async poll(view: View): Promise<string | undefined> {
    this.#open(view).polledAt = now();
    let stop: (() => void) | undefined;
    try {
      return await new Promise<string | undefined>((resolve) => {
        stop = this.#show(view, { next: resolve, end: () => resolve(undefined) });
      });
    } finally {
      stop?.();
    }
  }

  /** Ends all views. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const { viewers } of this.#views.values()) for (const viewer of [...viewers]) viewer.end();
  }

  #show(view: View, viewer: Viewer): () => void {
    const open = this.#open(view);
    open.viewers.add(viewer);
    if (open.latest && now() < open.latest.at + this.#everyMs) viewer.next(open.latest.json);
    if (this.#isClosed) viewer.end();
    this.#schedule();
    return () => void open.viewers.delete(viewer);
  }

  #open(view: View): OpenView {
    const id = JSON.stringify([view.filter, view.key]);
    let open = this.#views.get(id);
    if (open) return open;
    this.#forget();
    if (this.#views.size >= MOST_VIEWS)
      throw new TooManyViewsError(
        'Too many different filters and keys are looked at at the moment. Close another tab, or use the same filter.',
      );
    open = { ...view, viewers: new Set(), polledAt: -Infinity, latest: undefined };
    this.#views.set(id, open);
    return open;
  }

  /** Forgets the views that nobody looks at any more. */
  #forget(): void {
    for (const [id, { viewers, polledAt }] of this.#views)
      if (viewers.size === 0 && now() > polledAt + POLLED_FOR_MS) this.#views.delete(id);
  }

  #schedule(): void {
    if (this.#timer || this.#isMaking || this.#isClosed) return;
    const inMs = Math.max(0, this.#madeAt + this.#everyMs - now());
    this.#timer = atRoot(() => setTimeout(() => void this.#turn(), inMs).unref());
  }

  async #turn(): Promise<void> {
    this.#timer = undefined;
    this.#forget();
    if (this.#views.size === 0) return;
    this.#isMaking = true;
    this.#madeAt = now();
    const views = [...this.#views.values()];
    try {
      const snapshots = await this.#make(views);
      views.forEach((view, at) => (view.latest = { json: snapshots[at]!, at: this.#madeAt }));
      for (const { viewers, latest } of views) for (const viewer of [...viewers]) viewer.next(latest!.json);
    } catch (error) {
      logger.error('The lock page could not be brought up to date.', (error as Error).stack);
      for (const { viewers } of views) for (const viewer of [...viewers]) viewer.end();
    }
    this.#isMaking = false;
    this.#schedule();
  }
}
