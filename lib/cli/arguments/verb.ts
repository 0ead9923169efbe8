import type { Arguments } from './arguments.js';
import type { Say } from '../say.js';

/** An option of a verb. */
export interface Option {
  /** One letter, for `-E`. */
  readonly short?: string;
  /** What stands for its value in the help, such as `<duration>`. Left out: it is a flag. */
  readonly value?: string;
  /** Whether it may be given several times. @default false */
  readonly multiple?: boolean;
  readonly help: string;
}

export type Options = Readonly<Record<string, Option>>;

/** Does what a verb stands for. Resolves with the exit code. */
export type Action = (given: Arguments, say: Say) => Promise<number>;

/** A verb of the command, with all that its help says. Its action is loaded when it is needed. */
export interface Verb {
  readonly name: string;
  /** What follows the name: `<key> [options]`. */
  readonly synopsis: string;
  readonly summary: string;
  /** How many arguments without a dash it takes: at least, at most. */
  readonly takes: readonly [number, number];
  /** Whether a command follows behind `--`. @default false */
  readonly takesCommand?: boolean;
  readonly options: Options;
  /** More lines for the help. */
  readonly more?: string;
  load(): Promise<Action>;
}
