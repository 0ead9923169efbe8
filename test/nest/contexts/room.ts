import { turn, until } from '../../support/deferred.js';

/**
 * Where the bodies of locked methods meet. It counts who asks for the lock, who comes in, and how many are inside at a
 * time.
 */
export class Room {
  asked = 0;
  entered = 0;
  most = 0;
  #inside = 0;

  /** The key function of the lock. */
  readonly key = (): string => {
    this.asked++;
    return 'room';
  };

  /** The body. */
  async visit(): Promise<string> {
    this.entered++;
    this.most = Math.max(this.most, ++this.#inside);
    for (let turns = 0; turns < 3; turns++) await turn();
    this.#inside--;
    return 'visited';
  }

  hasBeenAskedFor(times: number): Promise<void> {
    return until(() => this.asked >= times, 10_000);
  }

  async hasBeenLeftBy(visitors: number): Promise<void> {
    await until(() => this.entered >= visitors && this.#inside === 0, 10_000);
  }
}
