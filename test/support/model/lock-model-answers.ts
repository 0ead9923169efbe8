/**
 * What becomes of a waiter whose turn it is: it `hears` of it; it is `deaf` and finds it when it asks again; it is
 * `absent`, and passed over; it is `gone`: given the key, and it gives it back at once; or nobody hears, and it keeps
 * its place but stops nobody (`unheard`).
 */
export type Ears = 'hears' | 'deaf' | 'absent' | 'gone' | 'unheard';

/** What a process is told. */
export interface Message {
  readonly what: 'granted' | 'contended' | 'lost';
  readonly token: string;
  readonly contended?: boolean;
}

/** What is answered to who asks for a lock; `holders` are those that may be named. */
export type ModelAnswer = ModelGrant | ModelRefusal | 'other permits';

export interface ModelGrant {
  readonly granted: true;
  readonly contended: boolean;
}

export interface ModelRefusal {
  readonly granted: false;
  readonly holders: readonly string[];
  readonly leaseLeftMs: number;
  readonly ahead: number;
}
