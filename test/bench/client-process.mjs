import { fork } from 'node:child_process';
import { moveToCore } from './pinning.mjs';

const CLIENT = new URL('./client.mjs', import.meta.url);

/**
 * Starts a process that measures one contender, and answers requests such as `call('round', { sections: 1000 })`. Without
 * a core, it runs wherever the system likes until `moveTo` says where.
 */
export async function startClient({ core, ...what }) {
  const { preload, build } = what.contender;
  const child = fork(CLIENT, [JSON.stringify(what)], {
    env: build ? { ...process.env, BENCH_LIB: build } : process.env,
    execArgv: ['--expose-gc', ...(preload ? ['--import', preload] : [])],
  });
  const waiting = new Map();
  let lastId = 0;

  child.on('message', ({ id, answer, error }) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (error) reject(new Error(`${what.contender.name}: ${error}`));
    else resolve(answer);
  });
  child.on('exit', (code) => {
    for (const { reject } of waiting.values())
      reject(new Error(`${what.contender.name}: its process ended with ${code}`));
  });
  const call = (action, args = {}) =>
    new Promise((resolve, reject) => {
      waiting.set(++lastId, { resolve, reject });
      child.send({ id: lastId, action, args });
    });

  const stop = () => child.kill('SIGKILL');

  try {
    await call('open');
  } catch (error) {
    stop();
    throw error;
  }
  const moveTo = (place) => moveToCore(place, child.pid);
  moveTo(core);
  return { call, moveTo, stop };
}
