import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { readGivenEnvironment } from '../src/config/environment.js';
import type { DemoCommand } from '../src/demo-page/demo-messages.js';
import { reason } from '../src/errors/reason.js';
import { Demonstrations } from './demo/demonstrations.js';
import { parentEnd } from './launcher/parent-end.js';
import { assertPortIsFree } from './launcher/port-check.js';
import { startServices } from './launcher/services.js';
import { welcome } from './launcher/welcome.js';
import type { AppReport } from './processes/app.process.js';
import { ChildProcesses } from './processes/child-processes.js';

const APP = new URL('processes/app.process.js', import.meta.url);
const DATA_FOLDER = fileURLToPath(new URL('../../../.data/postgres', import.meta.url));

const children = new ChildProcesses();

async function fail(error: unknown): Promise<void> {
  if (!children.isStopping) console.error(reason(error));
  await children.exit(1);
}

async function launch(): Promise<void> {
  const given = readGivenEnvironment(process.env);
  await assertPortIsFree(Number(given.PORT));

  const opsPassword = given.OPS_PASSWORD ?? randomBytes(6).toString('base64url');
  const { env, pauseRedis, databaseEnded, redisEnded } = await startServices(children, given, {
    dataFolder: DATA_FOLDER,
  });
  void databaseEnded.then(() => fail('The database has ended.'));
  void redisEnded.then(() => {
    if (!children.isStopping) console.warn('Redis has ended. Requests that need a lock get 503 from now on.');
  });

  const app = await children.start<AppReport>(APP, { env: { ...env, OPS_PASSWORD: opsPassword } });
  void app.ended.then(() => fail('The app has ended.'));

  const demonstrations = new Demonstrations({ children, env, pauseRedis, tell: (news) => app.send(news) });
  app.onMessage((message) => {
    if ('command' in (message as object)) void demonstrations.obey(message as DemoCommand);
  });
  app.send(Demonstrations.ready);
  console.log(welcome(app.report.url, opsPassword));
}

process.on('SIGINT', () => children.exit(0)).on('SIGTERM', () => children.exit(0));
// Without npm, a launcher in the background outlives the shell that started it.
if (process.env.npm_lifecycle_event === 'start') void parentEnd().then(() => children.exit(0));
await launch().catch(fail);
