// Waits for a lock in a cluster, and says what it got.
import { Cluster } from 'ioredis';
import { boot } from './locks.mjs';

const [port, key] = process.argv.slice(2);
const { locks } = await boot({ connection: new Cluster([{ host: '127.0.0.1', port: Number(port) }]) });
const lock = await locks.lock(key, { wait: '1m', lease: '30s' });
process.send({ fence: lock.fence });
