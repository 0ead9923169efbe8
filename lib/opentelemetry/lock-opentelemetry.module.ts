import { Global, Inject, Module } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import type { MeterProvider } from '@opentelemetry/api';
import { everyService } from '../boot/every-service.js';
import { LockMeter } from '../metrics/lock-meter.js';
import type { LockService } from '../service/lock.service.js';
import { ConfigurableModuleClass, OPENTELEMETRY_OPTIONS } from './lock-opentelemetry.module-definition.js';
import type { LockOpenTelemetryOptions } from './lock-opentelemetry.options.js';
import { resolveOptions } from './resolved-options.js';
import { openTelemetryInstruments } from './opentelemetry-instruments.js';
import { SCOPE } from './scope.js';
import { ServiceTracer } from './service-tracer.js';

/** The services that are measured already, by provider. */
const measured = new WeakMap<MeterProvider, WeakSet<LockService>>();

/**
 * Measures and traces the locks of the app for OpenTelemetry: of all its `RedisLockModule`s, whatever their names.
 * Needs the package `@opentelemetry/api`, and an SDK that is started before the app.
 *
 * @example
 * ```ts
 * @Module({ imports: [RedisLockModule.forRoot(), LockOpenTelemetryModule] })
 * export class AppModule {}
 * ```
 */
@Global()
@Module({ providers: [{ provide: OPENTELEMETRY_OPTIONS, useValue: {} }] })
export class LockOpenTelemetryModule extends ConfigurableModuleClass {
  readonly #modules: ModulesContainer;
  readonly #options: LockOpenTelemetryOptions;

  /** Nest builds it. @internal */
  constructor(
    @Inject(ModulesContainer) modules: ModulesContainer,
    @Inject(OPENTELEMETRY_OPTIONS) options: LockOpenTelemetryOptions,
  ) {
    super();
    this.#modules = modules;
    this.#options = options;
  }

  /**
   * Runs before the hooks of the modules that are not global, so that it measures their locks too. @internal
   *
   * @throws LockOptionsError for a wrong option
   */
  onModuleInit(): void {
    const options = resolveOptions(this.#options);
    const meter = options.metrics ? meterOf(options) : undefined;
    everyService(this.#modules, (service) => {
      meter?.measure(service);
      if (options.traces) service.watchers.traceWith(new ServiceTracer(service, options));
    });
  }
}

function meterOf({ meterProvider, maxLabels }: Required<LockOpenTelemetryOptions>): LockMeter {
  const services = measured.get(meterProvider) ?? new WeakSet();
  measured.set(meterProvider, services);
  return new LockMeter(openTelemetryInstruments(meterProvider.getMeter(SCOPE)), maxLabels, services);
}
