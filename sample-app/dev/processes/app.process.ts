import { SchedulerRegistry } from '@nestjs/schedule';
import { bootstrap } from '../../src/bootstrap.js';
import { playOnStage } from '../demo/stage-actor.js';
import { fail, tellParent } from './run-process.js';

/** What an app process tells its parent when it is ready. */
export interface AppReport {
  readonly url: string;
}

// Without its parent it stops as on any SIGTERM, which is what the shutdown hooks of Nest listen to.
const stop = () => process.kill(process.pid, 'SIGTERM');
process.once('disconnect', stop);
if (!process.connected) stop();

const app = await bootstrap().catch(fail);
// From three to four at night, interest would change the balances that a demonstration adds up.
for (const job of app.get(SchedulerRegistry).getCronJobs().values()) void job.stop();
if (process.env['ON_STAGE'] === '1') playOnStage(app);
await tellParent<AppReport>({ ready: { url: await app.getUrl() } });
