import { rival } from '../rivals/rival.mjs';

const { createClient } = rival('redis');
const { lock } = rival('simple-redis-mutex');

export const options = 'defaults (woken by PUBLISH, polls every 10 s); not renewed; node-redis 6';

async function open(url, { leaseMs }) {
  const redis = await createClient({ url }).connect();
  return {
    async section(key, work) {
      const release = await lock(redis, key, { timeout: leaseMs });
      try {
        return await work();
      } finally {
        await release();
      }
    },
  };
}

export const forms = { lock: open };
