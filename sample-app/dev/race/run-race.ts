import type { Answer, RaceClient } from './race-client.js';

const START_BALANCE = 10_000;

export interface RaceResult {
  readonly name: string;
  readonly expected: number;
  readonly actual: number;
  readonly responses: readonly Answer[];
  readonly seconds: number;
}

export interface Race {
  readonly name: string;
  readonly apps: readonly string[];
  readonly withdrawals: number;
  readonly query: string;
}

/** Withdraws 1 from one account, many times at once, spread over the apps. */
export async function runRace(client: RaceClient, { name, apps, withdrawals, query }: Race): Promise<RaceResult> {
  const [firstApp = ''] = apps;
  const account = await client.openAccount(firstApp, START_BALANCE);
  const progress = countProgress(name, withdrawals);

  const start = performance.now();
  const responses = await Promise.all(
    Array.from({ length: withdrawals }, async (_, turn) => {
      const answer = await client.withdraw(apps[turn % apps.length] ?? firstApp, account, query);
      progress();
      return answer;
    }),
  );
  const seconds = (performance.now() - start) / 1_000;

  const expected = START_BALANCE - responses.filter(({ status }) => status === 200).length;
  return { name, expected, actual: await client.balanceOf(firstApp, account), responses, seconds };
}

function countProgress(name: string, count: number): () => void {
  let done = 0;
  return () => {
    done++;
    if (done % (count / 4) === 0) console.log(`${name}: ${done} of ${count} withdrawals answered`);
  };
}
