/** Reports outages: once when one begins, once when it is over. */
export interface OutageLog {
  down(server: string, cause: Error): void;
  up(server: string): void;
  /** The subscription that wakes waiters is down: they poll about once a second until it is back. */
  unsubscribed(server: string, cause: Error | undefined): void;
  /** The subscription is back. */
  subscribed(server: string): void;
  /** The server does not let this app publish, so nobody is told of its turn. */
  mute(server: string, error: Error): void;
  /** The client that the app lends gets no reply, but another one does, which takes its place. */
  deserted(server: string): void;
  /** The server can be reached, but should not keep locks. */
  unfit(server: string, problem: string): void;
}

/** For a second connection to a server whose outages the first one reports. */
export const SILENT: OutageLog = {
  down: () => undefined,
  up: () => undefined,
  unsubscribed: () => undefined,
  subscribed: () => undefined,
  mute: () => undefined,
  deserted: () => undefined,
  unfit: () => undefined,
};
