import { parseArgs, type ParseArgsConfig } from 'node:util';
import { Arguments } from './arguments.js';
import { UsageError } from './usage.error.js';
import type { Options, Verb } from './verb.js';

/** Whether the help is asked for, by an option of our own: not by one of the command behind `--`. */
export function asksForHelp(words: readonly string[]): boolean {
  return ownWords(words).some((word) => word === '--help' || word === '-h');
}

/**
 * Reads what follows a verb.
 *
 * @throws UsageError for an unknown option, a missing value, or too few or too many words
 */
export async function readArguments(verb: Verb, words: readonly string[]): Promise<Arguments> {
  const own = verb.takesCommand ? ownWords(words) : words;
  const command = words.slice(own.length + 1);
  const { values, positionals } = await parse(verb.options, own);
  const [least, most] = verb.takes;
  if (verb.takesCommand && command.length === 0)
    throw new UsageError(
      own.length === words.length
        ? 'The command to run is missing: put it behind "--".'
        : 'There is no command behind "--".',
    );
  if (positionals.length < least) throw new UsageError('The key is missing.');
  if (positionals.length > most) {
    const { shown } = await import('../../errors/messages.js');
    throw new UsageError(`${shown(positionals[most])} is one word too many: put quotes around words with spaces.`);
  }
  return new Arguments(positionals, command, values);
}

const ownWords = (words: readonly string[]): readonly string[] => {
  const end = words.indexOf('--');
  return end < 0 ? words : words.slice(0, end);
};

async function parse(options: Options, args: readonly string[]) {
  const config = Object.fromEntries(
    Object.entries(options).map(([name, { short, value, multiple = false }]) => [
      name,
      { type: value ? ('string' as const) : ('boolean' as const), multiple, ...(short ? { short } : {}) },
    ]),
  ) satisfies ParseArgsConfig['options'];
  try {
    return parseArgs({ args: [...args], options: config, allowPositionals: true, strict: true });
  } catch (error) {
    throw new UsageError(await inOurWords(error as NodeJS.ErrnoException, options));
  }
}

/** Says what `parseArgs` says, without its advice for programmers. */
async function inOurWords({ code, message }: NodeJS.ErrnoException, options: Options): Promise<string> {
  // Behind a colon there may be a password: --redis://:password@host.
  const option = /'(-[^ ',:]*:?)/.exec(message)?.[1] ?? '';
  if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
    const { nearest } = await import('../../errors/nearest.js');
    const meant = nearest(option.replace(/^-+/, ''), Object.keys(options));
    return `There is no option ${option}.${meant ? ` Did you mean --${meant}?` : ''}`;
  }
  if (/ambiguous/.test(message)) {
    const joint = option.startsWith('--') ? '=' : '';
    return `The value of ${option} begins with a dash: write ${option}${joint}<value>.`;
  }
  if (/argument missing/.test(message)) return `The value of ${option} is missing.`;
  return message.split('. ')[0]!.replace(/\.?$/, '.');
}
