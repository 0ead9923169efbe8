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
}
