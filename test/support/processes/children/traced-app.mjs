// An app with the SDK of OpenTelemetry, and instrumented HTTP and ioredis: traced-app.mjs <redis url> <OTLP url> <name>
import 'reflect-metadata';
import { register } from 'node:module';
import process from 'node:process';
import { context, metrics, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { registerInstrumentations } from '@opentelemetry/instrumentation';
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http';
import { IORedisInstrumentation } from '@opentelemetry/instrumentation-ioredis';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';

const [redisUrl, otlpUrl, name] = process.argv.slice(2);

// As the guides of OpenTelemetry say: all this before the app.
register('@opentelemetry/instrumentation/hook.mjs', import.meta.url);
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const spans = new BatchSpanProcessor({ exporter: new OTLPTraceExporter({ url: `${otlpUrl}/v1/traces` }) });
const tracerProvider = new TracerProvider({ spanProcessors: [spans] });
trace.setGlobalTracerProvider(tracerProvider);
const exporter = new OTLPMetricExporter({ url: `${otlpUrl}/v1/metrics` });
const meterProvider = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter })] });
metrics.setGlobalMeterProvider(meterProvider);
registerInstrumentations({ instrumentations: [new HttpInstrumentation(), new IORedisInstrumentation()] });

const { NestFactory } = await import('@nestjs/core');
const { Redis } = await import('ioredis');
const { LockService, RedisLockModule } = await import('nest-redis-lock');
const { LockOpenTelemetryModule } = await import('nest-redis-lock/opentelemetry');

class AppModule {}
const own = new Redis(redisUrl);
const imports = [RedisLockModule.forRoot({ connection: redisUrl }), LockOpenTelemetryModule];
const app = await NestFactory.create({ module: AppModule, imports }, { logger: false });
const locks = app.get(LockService);
let release;
const released = new Promise((resolve) => (release = resolve));

app.getHttpAdapter().get('/hold', async (_request, response) => {
  await locks.withLock(
    'customer-1',
    async () => {
      await own.get(`row of ${name}`);
      process.send('inside');
      await released;
    },
    { label: 'pay' },
  );
  response.send('done');
});
await app.listen(0, '127.0.0.1');
process.send(await app.getUrl());

process.on('message', async (message) => {
  if (message === 'release') release();
  else {
    await app.close();
    own.disconnect();
    await tracerProvider.shutdown();
    await meterProvider.shutdown();
    process.disconnect();
  }
});
