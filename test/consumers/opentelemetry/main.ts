// An app with the SDK of OpenTelemetry that needs a newer Node than this package: metrics and spans arrive in memory.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { NestFactory } from '@nestjs/core';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { LockService, RedisLockModule } from 'nest-redis-lock';
import { LockOpenTelemetryModule } from 'nest-redis-lock/opentelemetry';

const spans = new InMemorySpanExporter();
const measured = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const tracerProvider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: spans })] });
const meterProvider = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter: measured })] });

class AppModule {}
const imports = [
  RedisLockModule.forRoot({ connection: process.env['REDIS_URL'] ?? '' }),
  LockOpenTelemetryModule.forRoot({ tracerProvider, meterProvider, acquireSpans: 'all' }),
];
const app = await NestFactory.createApplicationContext({ module: AppModule, imports }, { logger: false });
await app.get(LockService).withLock('job', () => undefined);
await app.close();
await meterProvider.forceFlush();

assert.deepEqual(
  spans.getFinishedSpans().map(({ name }) => name),
  ['lock.acquire', 'lock.hold'],
);
const names = measured
  .getMetrics()
  .flatMap(({ scopeMetrics }) => scopeMetrics)
  .flatMap(({ metrics }) => metrics.map(({ descriptor }) => descriptor.name));
for (const name of ['acquire.duration', 'hold.duration', 'held'])
  assert.ok(names.includes(`nest_redis_lock.${name}`), `no ${name}`);
await Promise.all([tracerProvider.shutdown(), meterProvider.shutdown()]);
console.log('works');
