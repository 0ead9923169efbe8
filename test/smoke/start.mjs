// Starts the sample as a newcomer does, with what it brings itself; asks it something; ends it with Ctrl-C.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { freePort } from '../support/free-port.mjs';

const port = await freePort();
const withoutServers = { ...process.env, DATABASE_URL: '', REDIS_URL: '', PORT: String(port) };
const npm = spawn('npm', ['start'], { env: withoutServers, stdio: ['ignore', 'pipe', 'inherit'], detached: true });
let output = '';
const giveUp = setTimeout(() => end('SIGKILL'), 120_000);

try {
  const url = await ready();
  const { id } = await post('/accounts', { owner: 'Ada', balance: 1000 });
  await Promise.all([
    post(`/accounts/${id}/withdraw`, { amount: 200 }),
    post(`/accounts/${id}/withdraw`, { amount: 300 }),
  ]);
  const { balance } = await (await fetch(`${url}/accounts/${id}`)).json();
  assert.equal(balance, 500, '1000 - 200 - 300');
  assert.equal((await fetch(`${url}/docs`)).status, 200);

  const exited = once(npm, 'exit');
  end('SIGINT');
  await exited;
  assert.equal(groupIsAlive(), false, 'something of its group still runs after Ctrl-C');
  for (const [, used] of output.matchAll(/127\.0\.0\.1:(\d+)/g))
    assert.equal(await answers(used), false, `port ${used} still answers after Ctrl-C`);
  console.log(`npm start: ready, 1000 - 200 - 300 = ${balance}, stopped.`);

  async function post(path, body) {
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    assert.ok(response.ok, `${path} answered ${response.status}`);
    return response.json();
  }
} finally {
  clearTimeout(giveUp);
  end('SIGKILL');
}

async function ready() {
  for await (const chunk of npm.stdout.iterator({ destroyOnReturn: false })) {
    process.stdout.write(chunk);
    output += chunk;
    const found = /Ready: (\S+)/.exec(output);
    if (!found) continue;
    npm.stdout.resume();
    return found[1];
  }
  throw new Error('npm start ended before it was ready.');
}

/** To the whole group, as a terminal does it. */
function end(signal) {
  try {
    process.kill(-npm.pid, signal);
  } catch {
    // They have all gone.
  }
}

function groupIsAlive() {
  try {
    return process.kill(-npm.pid, 0);
  } catch {
    return false;
  }
}

function answers(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true));
    socket.on('connect', () => socket.destroy()).on('error', () => resolve(false));
  });
}
