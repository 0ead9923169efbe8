import { readGivenEnvironment } from '../src/config/environment.js';
import { reason } from './describe.js';
import { startServices } from './launcher/services.js';
import type { AppReport } from './processes/app.process.js';
import { ChildProcesses } from './processes/child-processes.js';
import { RaceClient } from './race/race-client.js';
import { isExact, report } from './race/report.js';
import { runRace } from './race/run-race.js';

const APP = new URL('processes/app.process.js', import.meta.url);
const APPS = 4;
const WITHDRAWALS = 400;

const children = new ChildProcesses();
const interrupted = new AbortController();

async function race(): Promise<boolean> {
  const services = await startServices(children, readGivenEnvironment(process.env));
  // Long enough for the last of the queue, so that the race measures the lock and not the patience of its clients.
  const env = { ...services.env, PORT: '0', DEMO_UNSAFE: '1', LOCK_WAIT: '60s' };
  const started = await Promise.all(
    Array.from({ length: APPS }, () => children.start<AppReport>(APP, { env, quiet: true })),
  );
  const apps = started.map((app) => app.report.url);

  console.log(`\n${WITHDRAWALS} withdrawals of 1 at once from one account, over ${APPS} processes`);
  const client = new RaceClient(interrupted.signal);
  const unsafe = await runRace(client, { name: 'without lock', apps, withdrawals: WITHDRAWALS, query: '?unsafe=true' });
  const locked = await runRace(client, { name: 'with lock', apps, withdrawals: WITHDRAWALS, query: '' });
  console.log(`\n${report([unsafe, locked])}\n`);
  return isExact(locked);
}

function interrupt(): void {
  interrupted.abort();
  void children.exit(1);
}

process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
try {
  const isRight = await race();
  await children.exit(isRight ? 0 : 1);
} catch (error) {
  if (!children.isStopping) console.error(reason(error));
  await children.exit(1);
}
