import { spread } from './figures.mjs';

/**
 * Measures the contenders in turn, one at a time, in a new order each round, so that whatever else the machine does
 * meets all of them alike. Each has a process of its own; all are started anew a few times, because one process of the
 * same program can be some percent faster than the next. After a start, `warmUps` rounds are forgotten: the compiler
 * needs some thousand sections.
 *
 * Before the processes end, `last` may ask each for something that is not timed.
 *
 * @returns for each contender what `measure` answered, round by round
 */
export async function interleaved({ contenders, starts, warmUps, rounds, open, measure, last }) {
  const figures = contenders.map(() => []);
  for (let start = 1; start <= starts; start++) {
    const clients = [];
    try {
      // One by one: dozens of processes that start at once keep a small machine so busy that commands time out.
      for (const contender of contenders) clients.push(await open(contender));
      for (const client of clients) for (let round = 0; round < warmUps; round++) await measure(client);
      for (let round = 0; round < rounds; round++) {
        for (const at of shuffled(clients.length)) figures[at].push(await measure(clients[at]));
      }
      for (const [at, client] of clients.entries()) await last?.(client, at);
    } finally {
      for (const client of clients) client.stop();
    }
  }
  return figures;
}

/** The ratios of a contender's rounds to the same rounds of the floor, as median and spread. */
export function ratios(rounds, floorRounds, figure) {
  return spread(rounds.map((round, at) => round[figure] / floorRounds[at][figure]));
}

/** Of rounds that have several figures, say one for each number of callers, the nth. */
export const nthOf = (rounds, nth) => rounds.map((round) => round[nth]);

export function shuffled(count) {
  const order = Array.from({ length: count }, (_, at) => at);
  for (let at = count - 1; at > 0; at--) {
    const other = Math.floor(Math.random() * (at + 1));
    [order[at], order[other]] = [order[other], order[at]];
  }
  return order;
}
