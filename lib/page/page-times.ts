/** How often the page does what it does again and again. */
export interface PageTimes {
  /** How often it asks all processes while somebody looks, in ms. */
  readonly everyMs: number;
  /** How long a stream lasts, in ms: the browser asks for the next one, and the guards of the app decide again. */
  readonly streamMs: number;
}

export const PAGE_TIMES: PageTimes = { everyMs: 1_000, streamMs: 30_000 };
