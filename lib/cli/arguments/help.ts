import type { Options, Verb } from './verb.js';

export const NAME = 'nest-redis-lock';

/** The options that every verb which talks to Redis has. */
export const REDIS_OPTIONS: Options = {
  redis: {
    value: '<url>',
    multiple: true,
    help:
      "Says where Redis is. Default: the environment variable REDIS_URL, which other users of the machine can't see. " +
      'One Redis: redis://user:password@host:6379/0 (rediss:// with TLS). ' +
      'Sentinel: redis+sentinel://host:26379,host:26379/master-name. Cluster: redis+cluster://host:6379,host:6379. ' +
      'Three or more, given several times or with commas: a quorum (Redlock)',
  },
  prefix: { value: '<text>', help: 'Precedes each key in Redis, as "keyPrefix" of your app. Default: lock:' },
  timeout: { value: '<duration>', help: 'Limits each command to Redis. Default: 1s' },
};

const WIDTH = 100;
const INDENT = '  ';

/** The help of the whole command. */
export function generalHelp(verbs: readonly Verb[]): string {
  const names = verbs.map(({ name, summary }) => [name, summary] as const);
  return [
    'Sees and uses the locks of nest-redis-lock from the command line.',
    '',
    'Usage:',
    ...verbs.map(({ name, synopsis }) => `${INDENT}${NAME} ${name} ${synopsis}`),
    '',
    ...inColumns(names),
    '',
    `"${NAME} <verb> --help" shows the options of a verb, "${NAME} --version" the version.`,
    '',
  ].join('\n');
}

/** The help of a verb. */
export function helpOf({ name, synopsis, summary, options, more }: Verb): string {
  const rows = Object.entries(options).map(([option, { short, value, help }]) => {
    const names = `${short ? `-${short}, ` : ''}--${option}${value ? ` ${value}` : ''}`;
    return [names, help] as const;
  });
  return [
    `${summary}.`,
    '',
    `Usage: ${NAME} ${name} ${synopsis}`,
    '',
    'Options:',
    ...inColumns(rows),
    ...(more ? ['', more.trim()] : []),
    '',
  ].join('\n');
}

function inColumns(rows: readonly (readonly [string, string])[]): string[] {
  const left = Math.max(...rows.map(([name]) => name.length)) + INDENT.length;
  return rows.flatMap(([name, text]) =>
    wrapped(text, WIDTH - left - INDENT.length).map((line, at) => INDENT + (at === 0 ? name : '').padEnd(left) + line),
  );
}

function wrapped(text: string, width: number): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1)!;
    if (line !== '' && line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines;
}
