import { LockOptionsError } from '../errors/lock-options.error.js';
import { quoted, shown } from '../errors/messages.js';
import { logger } from '../log/logger.js';
import type { LockService } from '../service/lock.service.js';
import { DEFAULT_MODULE } from '../service/lock.tokens.js';
import { BoundedNames } from './bounded-names.js';
import type { LockInstruments } from './lock-instruments.js';
import { LockRecorder } from './lock-recorder.js';

/** How many different labels there are in metrics, unless an option says otherwise. */
export const MOST_LABELS = 200;

/** Measures the locks of all services of an app. */
export class LockMeter {
  readonly #instruments: LockInstruments;
  readonly #labels: BoundedNames;
  /** Two imports of one module must not count everything twice. */
  readonly #measured: WeakSet<LockService>;

  /**
   * @param measured the services that these instruments measure already
   * @throws LockOptionsError for a wrong `maxLabels`
   */
  constructor(instruments: LockInstruments, maxLabels: number, measured: WeakSet<LockService>) {
    if (!Number.isInteger(maxLabels) || maxLabels < 1)
      throw new LockOptionsError(`"maxLabels" is ${shown(maxLabels)}, but must be a whole number of at least 1.`);
    this.#instruments = instruments;
    this.#measured = measured;
    this.#labels = new BoundedNames(maxLabels, (label) =>
      logger.warn(
        `Locks have more than ${maxLabels} labels, so the metrics count ${quoted(label)} and all later ones as "other". ` +
          'Give calls a label that does not depend on their key, or raise "maxLabels".',
      ),
    );
  }

  /** Measures the locks of a service from now on, until its app has shut down. */
  measure(service: LockService): void {
    if (this.#measured.has(service)) return;
    this.#measured.add(service);
    const { moduleName } = service;
    const module = moduleName === DEFAULT_MODULE ? undefined : moduleName;
    service.events.subscribe(new LockRecorder(this.#instruments, this.#labels, module));
  }
}
