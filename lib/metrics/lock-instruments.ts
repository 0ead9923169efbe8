/** What a measurement is about. There is never a key in it: keys are too many for a metric, and can name customers. */
export interface LockAttributes {
  /** The label of the call, or the template of its key; `'other'` when it has neither. */
  readonly label: string;
  readonly mode: 'exclusive' | 'read' | 'permit';
  /** The `name` of the `RedisLockModule`, unless it is the default one. */
  readonly module?: string;
  /** Whether the call had to wait. Only of calls. */
  readonly queued?: boolean;
  /**
   * Why a call got no lock: `busy`, `unavailable`, `shutdown` or `aborted`; or why a lock was lost: `expired`, `taken`,
   * `shutdown` or `unlocked`.
   */
  readonly errorType?: string;
}

/** Describes a metric. */
export interface InstrumentDescription {
  /** The name in OpenTelemetry; Prometheus has underscores for the dots, and the unit behind it. */
  readonly name: string;
  readonly unit: 's' | '{call}' | '{lock}' | '{loss}';
  readonly description: string;
}

/** The metrics of this library. */
export const LOCK_INSTRUMENTS = {
  acquireDuration: {
    name: 'nest_redis_lock.acquire.duration',
    unit: 's',
    description: 'How long calls for a lock took, those that got none included',
  },
  holdDuration: {
    name: 'nest_redis_lock.hold.duration',
    unit: 's',
    description: 'How long locks were held',
  },
  lost: {
    name: 'nest_redis_lock.lost',
    unit: '{loss}',
    description: 'Locks that were lost while they were held, because their lease was over or they were taken away',
  },
  held: {
    name: 'nest_redis_lock.held',
    unit: '{lock}',
    description: 'Locks that this process holds',
  },
  waiting: {
    name: 'nest_redis_lock.waiting',
    unit: '{call}',
    description: 'Calls of this process that wait for a lock',
  },
  leaseMargin: {
    name: 'nest_redis_lock.lease.margin',
    unit: 's',
    description: 'How much of the lease was left when a renewal was confirmed',
  },
} as const satisfies Record<string, InstrumentDescription>;

/** The bounds of all histograms, in seconds: from an uncontended lock to the longest job, 0.5 ms to 30 min. */
export const BUCKETS: readonly number[] = [
  ...[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5],
  ...[1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800],
];

/** Records durations. */
export interface DurationRecorder {
  /** @param seconds of the measurement */
  record(seconds: number, attributes: LockAttributes): void;
}

/** Counts up. */
export interface UpCounter {
  /** @param change 0 begins the time series, so that its first loss is an increase */
  add(change: 0 | 1, attributes: LockAttributes): void;
}

/** Counts up and down. */
export interface UpDownCounter {
  add(change: 1 | -1, attributes: LockAttributes): void;
}

/** The metrics in a library for metrics. */
export type LockInstruments = {
  readonly [Name in keyof typeof LOCK_INSTRUMENTS]: (typeof LOCK_INSTRUMENTS)[Name]['unit'] extends 's'
    ? DurationRecorder
    : (typeof LOCK_INSTRUMENTS)[Name]['unit'] extends '{loss}'
      ? UpCounter
      : UpDownCounter;
};
