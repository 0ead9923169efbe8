/** Events kept of a key, and keys in each of two generations. */
const EVENTS_OF_KEY = 16;
const MOST_KEYS = 500;

/** Rare events, which are kept longer: of all keys together. */
const NOTABLE_EVENTS = 500;

/** Something that happened to a key. */
export interface KeptEvent {
  /** When it happened, by the monotonic clock. */
  readonly at: number;
}

/**
 * Keeps the last events of those keys that had one lately: of 500 to 1,000 keys. Notable events are kept longer,
 * because a key in trouble is looked up later, after many others.
 */
export class KeyHistory<Event extends KeptEvent> {
  #young = new Map<string, Event[]>();
  #old = new Map<string, Event[]>();
  readonly #notable: { readonly key: string; readonly event: Event }[] = [];

  add(key: string, event: Event, isNotable: boolean): void {
    const events = this.#eventsOf(key);
    if (events.length === EVENTS_OF_KEY) events.shift();
    events.push(event);
    if (!isNotable) return;
    if (this.#notable.length === NOTABLE_EVENTS) this.#notable.shift();
    this.#notable.push({ key, event });
  }

  /** The events of a key, the latest first. */
  of(key: string): Event[] {
    const events = new Set(this.#young.get(key) ?? this.#old.get(key));
    for (const notable of this.#notable) if (notable.key === key) events.add(notable.event);
    return [...events].sort((a, b) => b.at - a.at);
  }

  #eventsOf(key: string): Event[] {
    let events = this.#young.get(key);
    if (events) return events;
    if (this.#young.size >= MOST_KEYS) [this.#old, this.#young] = [this.#young, new Map<string, Event[]>()];
    events = this.#old.get(key) ?? [];
    this.#young.set(key, events);
    return events;
  }
}
