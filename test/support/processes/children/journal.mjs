// Notes who is inside of a lock, and what they see there, in a file: before it goes on, so that it survives a SIGKILL.
import { openSync, writeSync } from 'node:fs';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { clock } from './locks.mjs';

const NOTE_EVERY_MS = 50;

export class Journal {
  #file;
  #stays = 0;

  /** Without a file it notes nothing. */
  constructor(file) {
    this.#file = file && openSync(file, 'a');
  }

  /** Somebody has been let in, with this lock. */
  enter(lock, { askedAt, permits }) {
    return new Stay((line) => this.#write(line), ++this.#stays, { lock, askedAt, permits });
  }

  #write(line) {
    if (this.#file) writeSync(this.#file, `${JSON.stringify(line)}\n`);
  }
}

class Stay {
  #write;
  #lock;
  #signal;
  #loss = {};
  #entry;
  #goodUntil;

  constructor(write, number, { lock, askedAt, permits }) {
    // In this order: should the process stand still in between, it notes a lease that is over, not one that lasts too
    // long.
    const beganAt = clock();
    const goodUntil = beganAt + (lock?.remaining() ?? 0);
    this.#write = (line) => write({ number, ...line });
    this.#lock = lock;
    this.#signal = lock?.signal;
    this.#signal?.addEventListener(
      'abort',
      () => (this.#loss = { abortedAt: clock(), lost: this.#signal.reason.reason }),
    );
    this.#entry = {
      pid: process.pid,
      keys: lock?.keys ?? ['?'],
      mode: lock?.mode,
      permits,
      token: lock?.leases[0].token,
      fence: lock?.fence,
      askedAt,
      beganAt,
      goodUntil,
    };
    this.#goodUntil = goodUntil;
    this.#write(this.#entry);
  }

  /**
   * Waits for so long, and looks now and then: in a task that began after the time was over, as after a stall. Leaves
   * when the lock is lost, if it is told so.
   */
  async stay(ms, { leaves = false } = {}) {
    const until = clock() + ms;
    let notedAt = clock();
    for (let left = ms; left > 0 && !(leaves && this.#signal.aborted); left = until - clock()) {
      await sleep(Math.min(NOTE_EVERY_MS, left), undefined, leaves ? { signal: this.#signal } : {}).catch(
        () => undefined,
      );
      await turn();
      // A process that stood still goes on here before any of its timers: those that are due come first.
      if (clock() >= this.#goodUntil && !this.#signal.aborted) await sleep(1).then(() => turn());
      const [lookedAt, { aborted }] = [clock(), this.#signal];
      const remaining = this.#lock.remaining();
      if (remaining > 0) this.#goodUntil = lookedAt + remaining;
      if (lookedAt < notedAt + NOTE_EVERY_MS && remaining > 0) continue;
      notedAt = lookedAt;
      this.#write({ lookedAt, aborted, goodUntil: remaining > 0 ? lookedAt + remaining : undefined });
      if (remaining === 0 && leaves) return;
    }
  }

  /** The work is done; answers what there is to tell. */
  exit() {
    const exit = { isHeld: this.#lock.isHeld, endedAt: clock(), ...this.#loss };
    this.#write(exit);
    return { ...this.#entry, ...exit };
  }

  unlocked(unlocked) {
    this.#write({ unlocked, unlockedAt: clock() });
  }

  /** Its call has failed. */
  failed(code) {
    if (code !== 'LOCK_LOST') this.#write({ refused: code });
  }
}
