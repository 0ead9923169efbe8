// Some callers wait for a lock in a cluster, and say what they got.
import { Cluster } from 'ioredis';
import { boot } from './locks.mjs';

const [port, key, callers] = process.argv.slice(2);
const { locks } = await boot({ connection: new Cluster([{ host: '127.0.0.1', port: Number(port) }]) });
for (let count = 0; count < Number(callers); count++) {
  void locks.lock(key, { wait: '1m', lease: '30s', fair: true }).then(({ fence }) => process.send({ fence }));
}
