// A command that does not end when it is told to: it says so instead, and when it was alive, by the clock of all
// processes.
import { writeSync } from 'node:fs';
import { setInterval } from 'node:timers';

const say = (line) => writeSync(1, `${line}\n`);
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1'])
  process.on(signal, () => say(`got ${signal}`));
const sayAlive = () => say(`alive ${Number(process.hrtime.bigint()) / 1e6}`);
sayAlive();
say(`started ${process.pid}`);
setInterval(sayAlive, 5);
