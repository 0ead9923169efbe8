import { UsageError } from './usage.error.js';

/** What follows the verb on the command line, read and checked. */
export class Arguments {
  /** What has no dash. */
  readonly words: readonly string[];
  /** What stands behind `--`. */
  readonly command: readonly string[];
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(words: readonly string[], command: readonly string[], values: Readonly<Record<string, unknown>>) {
    this.words = words;
    this.command = command;
    this.#values = values;
  }

  text(option: string): string | undefined {
    return this.#values[option] as string | undefined;
  }

  flag(option: string): boolean {
    return this.#values[option] === true;
  }

  list(option: string): readonly string[] {
    return (this.#values[option] as readonly string[] | undefined) ?? [];
  }

  /** @throws UsageError unless it is a whole number from `min` to `max` */
  number(option: string, min: number, max: number): number | undefined {
    const text = this.text(option);
    if (text === undefined) return undefined;
    if (/^\d+$/.test(text) && Number(text) >= min && Number(text) <= max) return Number(text);
    throw new UsageError(`--${option} is ${JSON.stringify(text)}, but must be a whole number from ${min} to ${max}.`);
  }
}
