/** What a database or Redis process tells its parent when it is ready. */
export interface ServiceReport {
  readonly url: string;
  /** What it is, for people. */
  readonly name: string;
}
