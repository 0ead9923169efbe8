import { Global, Inject, Module } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { register, type Registry } from 'prom-client';
import { everyService } from '../boot/every-service.js';
import { checkedOptions, checkedPart } from '../metrics/checked-options.js';
import { LockMeter, MOST_LABELS } from '../metrics/lock-meter.js';
import type { LockService } from '../service/lock.service.js';
import { ConfigurableModuleClass, PROMETHEUS_OPTIONS } from './lock-prometheus.module-definition.js';
import type { LockPrometheusOptions } from './lock-prometheus.options.js';
import { prometheusInstruments } from './prometheus-instruments.js';

/** The services that are measured already, by registry. */
const measured = new WeakMap<Registry, WeakSet<LockService>>();

/**
 * Measures the locks of the app for Prometheus: of all its `RedisLockModule`s, whatever their names. Needs the package
 * `prom-client`.
 *
 * @example
 * ```ts
 * @Module({ imports: [RedisLockModule.forRoot(), LockPrometheusModule] })
 * export class AppModule {}
 * ```
 */
@Global()
@Module({ providers: [{ provide: PROMETHEUS_OPTIONS, useValue: {} }] })
export class LockPrometheusModule extends ConfigurableModuleClass {
  readonly #modules: ModulesContainer;
  readonly #options: LockPrometheusOptions;

  /** Nest builds it. @internal */
  constructor(
    @Inject(ModulesContainer) modules: ModulesContainer,
    @Inject(PROMETHEUS_OPTIONS) options: LockPrometheusOptions,
  ) {
    super();
    this.#modules = modules;
    this.#options = options;
  }

  /**
   * Runs before the hooks of the modules that are not global, so that it measures their locks too. @internal
   *
   * @throws LockOptionsError for a wrong option, or a registry with other metrics of these names
   */
  onModuleInit(): void {
    const { registry = register, maxLabels = MOST_LABELS } = checkedOptions(this.#options, ['registry', 'maxLabels']);
    checkedPart('registry', registry, 'getSingleMetric', 'a Registry of prom-client');
    const services = measured.get(registry) ?? new WeakSet();
    measured.set(registry, services);
    const meter = new LockMeter(prometheusInstruments(registry), maxLabels, services);
    everyService(this.#modules, (service) => meter.measure(service));
  }
}
