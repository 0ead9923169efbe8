// Boots a Nest app, alone or with the module, and prints how long each step took, in ms. With "text" it only
// reads the text of the library.
import 'reflect-metadata';
import { performance } from 'node:perf_hooks';
import '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import 'ioredis';
import 'rxjs';

const [url] = process.argv.slice(2);
class App {}

// The first app compiles what all apps share.
await (await NestFactory.createApplicationContext({ module: App }, { logger: false })).close();
// The first import of a running process takes some ms by itself, whatever it is: an app has made it already.
await import('data:text/javascript,');

const startedAt = performance.now();
const imports = [];
if (url === 'text') {
  await import(process.env.BENCH_TEXT);
} else if (url) {
  const { RedisLockModule } = await import(process.env.BENCH_LIB ?? 'nest-redis-lock');
  imports.push(RedisLockModule.forRoot({ connection: url }));
}
const importedAt = performance.now();
const app = await NestFactory.createApplicationContext({ module: App, imports }, { logger: false });
const bootedAt = performance.now();
await app.close();
console.log(JSON.stringify({ importMs: importedAt - startedAt, bootMs: bootedAt - importedAt }));
