import { describe, expect, it } from '@jest/globals';
import { readArguments } from '../../lib/cli/arguments/read-arguments.js';
import { generalHelp, helpOf } from '../../lib/cli/arguments/help.js';
import { main } from '../../lib/cli/main.js';
import { VERBS } from '../../lib/cli/verbs.js';

/** What a command line says on stderr, and its exit code. */
async function said(...words: string[]): Promise<[number, string]> {
  const lines: string[] = [];
  const code = await main(words, (line) => lines.push(line));
  return [code, lines.join('\n')];
}

const verb = (name: string) => VERBS.find((verb) => verb.name === name)!;

describe('The command line', () => {
  it.each([
    [[], /^The verb is missing\. The verbs are run.*\. Type "nest-redis-lock --help"\.$/],
    [['rnu'], /^There is no verb "rnu"\. Did you mean "run"\? Type "nest-redis-lock --help"\.$/],
    [['help', 'rnu'], /^There is no verb "rnu"/],
    [['run'], /^The command to run is missing: put it behind "--"\. Type "nest-redis-lock run --help"\.$/],
    [['run', 'key', 'true'], /^The command to run is missing/],
    [['run', 'key', '--'], /^There is no command behind "--"\./],
    [['run', '--', 'true'], /^The key is missing\./],
    [['run', 'a', 'b', '--', 'true'], /^"b" is one word too many/],
    [['run', 'a', '--wiat', '3s', '--', 'true'], /^There is no option --wiat\. Did you mean --wait\?/],
    [['run', 'a', '--zzz', '--', 'true'], /^There is no option --zzz\. Type/],
    [['run', 'a', '--wait', '--', 'true'], /^The value of --wait is missing\./],
    [['run', 'a', '--wait', '--skip', '--', 'true'], /^The value of --wait begins with a dash: write --wait=<value>\./],
    [['run', 'a', '-E', '-1', '--', 'true'], /^The value of -E begins with a dash: write -E<value>\./],
    [['run', 'a', '-E-1', '--', 'true'], /^--busy-code is "-1", but must be a whole number from 0 to 255\./],
    [['run', 'a', '--skip=1', '--', 'true'], /--skip/],
    [['run', 'a', '--wait', 'soon', '--', 'true'], /^"--wait" is "soon", but must be a duration of at least 0 ms/],
    [['run', 'a', '-E', '256', '--', 'true'], /^--busy-code is "256", but must be a whole number from 0 to 255\./],
    [['run', 'a', '--lease', '1s', '--grace', '1s', '--', 'true'], /^--grace is 1000 ms, but must be at most half/],
    [['ls', 'a', 'b'], /^"b" is one word too many/],
    [['ls', 'a', 'redis://:hunter2@h'], /^"redis:\/\/…@h" is one word too many/],
    [['redis://:hunter2@h', 'ls'], /^There is no verb "redis:\/\/…@h"/],
    [['ls', '--redis://:a=hunter2@h'], /^There is no option --redis:\. Did you mean --redis\?/],
    [['ls', '--limit', ':hunter2@h'], /^--limit is "…@h", but must be a whole number/],
    [['run', 'a', '--wait', '10', '--', 'true'], /^--wait is "10", without a unit: say "10s" or "10ms"\./],
    [['ls', '--older', 'soon'], /^"--older" is "soon", but must be a duration of at least 0 ms/],
    [['ls', ''], /^The pattern is empty: leave it out for all keys/],
    [['ls', '--redis', 'redis://10.0.0.1/abc'], /^--redis is a URL whose path is not the number of a database/],
    [['ls', '--limit', '0'], /^--limit is "0", but must be a whole number from 1 to 100000\./],
    [['run', 'a', '--redis', '', '--', 'true'], /^--redis is empty: set REDIS_URL/],
  ])('%j is refused with 64, and one line that says what to type', async (words, line) => {
    const [code, text] = await said(...words);
    expect([code, text]).toEqual([64, expect.stringMatching(line)]);
    expect(text).not.toContain('hunter2');
  });

  it('what follows "--" belongs to the command, whatever it looks like', async () => {
    const given = await readArguments(verb('run'), ['key', '--skip', '--', 'ls', '--help', '--', '-E']);
    expect([given.words, given.flag('skip'), given.command]).toEqual([['key'], true, ['ls', '--help', '--', '-E']]);
  });

  it('the help names every verb, and that of a verb every option, in lines of at most 120 characters', () => {
    for (const { name } of VERBS) expect(generalHelp(VERBS)).toContain(`nest-redis-lock ${name} `);
    for (const one of VERBS) {
      for (const option of Object.keys(one.options)) expect(helpOf(one)).toContain(`--${option}`);
      const lines = helpOf(one).split('\n');
      expect(lines.filter((line) => line.length > 120)).toEqual([]);
    }
  });
});
