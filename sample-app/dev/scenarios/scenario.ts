import type { DemoScenario } from '../../src/demo-page/demo-messages.js';
import type { Answer, ShopClient } from './shop-client.js';

/** What came of a scenario. */
export interface Outcome {
  /** What the data should say, in few words. */
  readonly expected: string;
  readonly actual: string;
  /** How often it went wrong. */
  readonly accidents: number;
  readonly answers: readonly Answer[];
}

/** Something that many callers do at once, which needs a lock. */
export interface Scenario extends DemoScenario {
  /** What accidents are called. */
  readonly accident: { readonly one: string; readonly many: string };
  /** Whether it changes what other runs look at, so that it must run alone. */
  readonly runsAlone: boolean;
  /** @param query what to add to the path, so that the lock is left out */
  run(shop: ShopClient, query: string): Promise<Outcome>;
}

/** The status of an answer that did what was asked for. */
export const isDone = ({ status }: Answer): boolean => status >= 200 && status < 300;
