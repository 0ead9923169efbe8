/** Whether these bytes, on this connection, are swallowed. */
export type Drops = (chunk: Buffer, wire: Wire) => boolean;

/** What goes one way on a connection. */
export interface Flow {
  /** Keeps back what comes from now on. */
  hold(): void;
  /** Whether something is kept back. */
  readonly keepsBack: boolean;
  /** Resolves when the next bytes are kept back. */
  nextHeld(): Promise<void>;
  /** Sends on the oldest bytes that were kept back. */
  releaseNext(): void;
  /** Sends on what was kept back, and everything from now on. */
  release(): void;
  /** Swallows what comes from now on, or some of it. */
  drop(drops?: Drops): void;
  /** Swallows nothing from now on. */
  pass(): void;
}

/** One connection through the proxy. */
export interface Wire {
  readonly requests: Flow;
  readonly replies: Flow;
  readonly isOpen: boolean;
  /** Whether it was subscribed to something. */
  readonly subscribes: boolean;
  /** Breaks it, at both ends. */
  cut(): void;
  /** The client's end is gone; the server is not told. */
  loseClient(): void;
  /** From now on the server is not told when the client's end is gone. */
  outliveClient(): void;
  /** The server's end is gone; the client is not told. */
  loseServer(): void;
}

export interface TcpProxy {
  readonly port: number;
  readonly url: string;
  /** All connections there have been, by arrival. */
  readonly wires: readonly Wire[];
  /** Swallows what clients say from now on, or some of it: on all connections, new ones too. */
  dropRequests(drops?: Drops): void;
  /** Keeps back what clients say from such bytes on: on all connections, new ones too. Until each is released. */
  holdRequests(from: Drops): void;
  /** Swallows what the server says from now on, or some of it; the clients' words still get through. */
  dropReplies(drops?: Drops): void;
  /** Swallows nothing from now on. */
  heal(): void;
  /**
   * How much later everything arrives from now on, in ms each way: in order, and nothing waits for another. At first 0.
   */
  delay(ms: number): void;
  /** Resolves when the next bytes of the server have been swallowed, so the command has run. */
  nextDroppedReply(): Promise<void>;
  /** Breaks every connection. New ones are welcome. */
  cut(): void;
  /** Makes every new connection to another server. Those that there are stay. */
  leadTo(port: number): void;
  /** Breaks every connection, and every new one until `welcome`. */
  refuse(): void;
  refuseRudely(): void;
  welcome(): void;
  /** The connections that are subscribed to something, and no others. */
  readonly subscribers: SubscriberFaults;
  stop(): Promise<void>;
}

interface SubscriberFaults {
  /** Breaks them. New ones are welcome. */
  cut(): void;
  /** Breaks them, and new ones as soon as they try to subscribe. */
  refuse(): void;
  /** Swallows what the server says to those that there are now, as a half-open connection does. */
  swallow(): void;
  /** The server has closed those that there are now; their clients are not told. */
  loseServer(): void;
  /** Keeps what the server says to them until `heal`. */
  hold(): void;
  /** New ones are welcome, and what was held back arrives. */
  heal(): void;
}

/** Stands between clients and Redis on the loopback interface, and misbehaves when told to. */
export function startProxy(targetPort: number): Promise<TcpProxy>;
