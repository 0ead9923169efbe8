import type { Readable } from 'node:stream';

/** Lets a call flow or not, and leaves it alone while the app itself has paused it. */
export class CallFlow {
  readonly #pause: () => Readable;
  readonly #resume: () => Readable;
  #isPausedByApp = false;

  constructor(call: Readable) {
    const pause = (this.#pause = call.pause.bind(call));
    const resume = (this.#resume = call.resume.bind(call));
    call.pause = () => {
      this.#isPausedByApp = true;
      return pause();
    };
    call.resume = () => {
      this.#isPausedByApp = false;
      return resume();
    };
  }

  pause(): void {
    this.#pause();
  }

  resume(): void {
    if (!this.#isPausedByApp) this.#resume();
  }
}
