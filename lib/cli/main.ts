import { createRequire } from 'node:module';
import { asksForHelp, readArguments } from './arguments/read-arguments.js';
import { generalHelp, helpOf, NAME } from './arguments/help.js';
import { UsageError } from './arguments/usage.error.js';
import { EXIT, exitCodeFor } from './exit-codes.js';
import { inOwnWords } from './own-words.js';
import { print } from './print.js';
import type { Say } from './say.js';
import { VERBS } from './verbs.js';

/** Does what the words of a command line say. Resolves with the exit code. */
export async function main([first, ...rest]: readonly string[], sayIt: Say): Promise<number> {
  const isRedisGiven = rest.some((word) => /^--redis(?:=|$)/.test(word));
  const say: Say = (line) => sayIt(inOwnWords(line, isRedisGiven));
  if (first === '--version' || first === '-v') return show(`${version()}\n`);
  if (first === '--help' || first === '-h' || first === 'help') return help(rest[0], say);
  const verb = VERBS.find(({ name }) => name === first);
  if (!verb) return unknownVerb(first, say);
  if (asksForHelp(rest)) return show(helpOf(verb));
  try {
    const given = await readArguments(verb, rest);
    const action = await verb.load();
    return await action(given, say);
  } catch (error) {
    return failed(error, verb.name, say);
  }
}

async function help(name: string | undefined, say: Say): Promise<number> {
  const verb = VERBS.find((verb) => verb.name === name);
  if (name !== undefined && !verb) return unknownVerb(name, say);
  return show(verb ? helpOf(verb) : generalHelp(VERBS));
}

async function unknownVerb(name: string | undefined, say: Say): Promise<number> {
  const { nearest } = await import('../errors/nearest.js');
  const { shown } = await import('../errors/messages.js');
  const names = VERBS.map(({ name }) => name);
  const meant = name === undefined ? undefined : nearest(name, names);
  const what = name === undefined ? 'The verb is missing.' : `There is no verb ${shown(name)}.`;
  say(`${what} ${meant ? `Did you mean "${meant}"?` : `The verbs are ${names.join(', ')}.`} Type "${NAME} --help".`);
  return EXIT.usage;
}

function failed(error: unknown, verb: string, say: Say): number {
  if (error instanceof UsageError) {
    say(`${error.message} Type "${NAME} ${verb} --help".`);
    return EXIT.usage;
  }
  const code = exitCodeFor(error);
  if (code === undefined) say(error instanceof Error ? (error.stack ?? error.message) : String(error));
  else say((error as { detail: string }).detail);
  return code ?? EXIT.bug;
}

async function show(text: string): Promise<number> {
  await print(text);
  return EXIT.ok;
}

function version(): string {
  const require = createRequire(import.meta.url);
  return (require('nest-redis-lock/package.json') as { version: string }).version;
}
