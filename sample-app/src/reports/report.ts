export interface Report {
  /** Counts the reports that were made. */
  readonly id: number;
  readonly accounts: number;
  /** The sum of all balances. It may be more than a number counts exactly. */
  readonly total: string;
  readonly madeAt: Date;
}
