import { balanceOf, openAccount, withdraw, type Answer } from './withdrawals.js';

const START_BALANCE = 10_000;

export interface RaceResult {
  readonly name: string;
  readonly expected: number;
  readonly actual: number;
  readonly answers: readonly Answer[];
  readonly seconds: number;
}

/** Withdraws 1 from one account, `count` times at once, spread over the apps. */
export async function runRace(name: string, apps: readonly string[], count: number, query = ''): Promise<RaceResult> {
  const [firstApp = ''] = apps;
  const account = await openAccount(firstApp, START_BALANCE);
  const progress = countProgress(name, count);

  const start = performance.now();
  const answers = await Promise.all(
    Array.from({ length: count }, async (_, turn) => {
      const answer = await withdraw(apps[turn % apps.length] ?? firstApp, account, query);
      progress();
      return answer;
    }),
  );
  const seconds = (performance.now() - start) / 1_000;

  const expected = START_BALANCE - answers.filter(({ status }) => status === 200).length;
  return { name, expected, actual: await balanceOf(firstApp, account), answers, seconds };
}

function countProgress(name: string, count: number): () => void {
  let done = 0;
  return () => {
    done++;
    if (done % (count / 4) === 0) console.log(`${name}: ${done} of ${count} withdrawals answered`);
  };
}
