// A process of an app under load, for the scenario "page": holds locks, and runs sections on other keys. It serves the
// lock page, if asked to. Answers requests of its parent: 'cpu', its CPU time so far in ms; 'open', how long a snapshot
// takes; 'look' and 'leave', to look at the page all the time.
import 'reflect-metadata';
import { get } from 'node:http';
import { performance } from 'node:perf_hooks';
import { setInterval } from 'node:timers';
import { setTimeout as sleep } from 'node:timers/promises';
import { NestFactory } from '@nestjs/core';
import { LockService, RedisLockModule } from 'nest-redis-lock';
import { LockPageModule } from 'nest-redis-lock/page';

const { url, hasPage, held, perSecond } = JSON.parse(process.argv[2]);
class App {}
const imports = [RedisLockModule.forRoot({ connection: url, lease: '30s' })];
if (hasPage) imports.push(LockPageModule.forRoot({ openToEverybody: true }));
const app = await NestFactory.create({ module: App, imports }, { logger: ['error', 'warn'] });
await app.listen(0, '127.0.0.1');
const locks = app.get(LockService);
const page = `${await app.getUrl()}/locks`;

const keys = Array.from({ length: held }, (_, at) => `account:${process.pid}:${at}`);
while (keys.length) await Promise.all(keys.splice(0, 500).map((key) => locks.lock(key, { label: 'Account.hold' })));

let count = 0;
const STEP_MS = 20;
setInterval(() => {
  for (let due = (perSecond * STEP_MS) / 1000; due > 0; due--)
    void locks.withLock(`order:${count++ % 1000}`, () => undefined, { label: `Order.step${count % 10}` });
}, STEP_MS);

let looking;
const ACTIONS = {
  cpu: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  },
  async open() {
    const began = performance.now();
    const response = await fetch(`${page}/snapshot?filter=${count}`);
    const { totals } = await response.json();
    return { ms: performance.now() - began, ...totals };
  },
  async look() {
    looking = get(`${page}/events`, (response) => response.resume());
    looking.on('error', () => undefined);
    await sleep(2_000);
  },
  leave: () => void looking.destroy(),
};
process.on('message', async ({ id, action }) => process.send({ id, answer: await ACTIONS[action]() }));
process.send({ id: 0 });
