import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { LockOptionsError } from '../errors/lock-options.error.js';
import { quoted } from '../errors/messages.js';
import {
  BUCKETS,
  LOCK_INSTRUMENTS,
  type DurationRecorder,
  type InstrumentDescription,
  type LockAttributes,
  type LockInstruments,
  type UpCounter,
  type UpDownCounter,
} from '../metrics/lock-instruments.js';

const LABEL_NAMES = ['label', 'mode', 'module'] as const;
const CALL_LABEL_NAMES = [...LABEL_NAMES, 'queued', 'error_type'] as const;
const HOLD_LABEL_NAMES = [...LABEL_NAMES, 'error_type'] as const;

type LabelNames = readonly (typeof CALL_LABEL_NAMES)[number][];

/**
 * Makes the metrics in a registry; or finds those that an earlier app of the process has made there.
 *
 * @throws LockOptionsError when the registry has other metrics of these names
 */
export function prometheusInstruments(registry: Registry): LockInstruments {
  const { acquireDuration, holdDuration, lost, held, waiting, leaseMargin } = LOCK_INSTRUMENTS;
  return {
    acquireDuration: histogram(registry, acquireDuration, CALL_LABEL_NAMES),
    holdDuration: histogram(registry, holdDuration, HOLD_LABEL_NAMES),
    lost: counter(registry, lost),
    held: gauge(registry, held),
    waiting: gauge(registry, waiting),
    leaseMargin: histogram(registry, leaseMargin, LABEL_NAMES),
  };
}

function histogram(registry: Registry, described: InstrumentDescription, labelNames: LabelNames): DurationRecorder {
  const { name, description: help } = inPrometheus(described);
  const metric =
    existing<Histogram>(registry, name, labelNames) ??
    new Histogram({ name, help, labelNames: [...labelNames], buckets: [...BUCKETS], registers: [registry] });
  return { record: (seconds, attributes) => metric.observe(labelsOf(attributes), seconds) };
}

function counter(registry: Registry, described: InstrumentDescription): UpCounter {
  const { name: base, description: help } = inPrometheus(described);
  const name = `${base}_total`;
  const metric =
    existing<Counter>(registry, name, HOLD_LABEL_NAMES) ??
    new Counter({ name, help, labelNames: [...HOLD_LABEL_NAMES], registers: [registry] });
  return { add: (change, attributes) => metric.inc(labelsOf(attributes), change) };
}

function gauge(registry: Registry, described: InstrumentDescription): UpDownCounter {
  const { name, description: help } = inPrometheus(described);
  const metric =
    existing<Gauge>(registry, name, LABEL_NAMES) ??
    new Gauge({ name, help, labelNames: [...LABEL_NAMES], registers: [registry] });
  const counts = countsOf(metric);
  const add = (change: 1 | -1, attributes: LockAttributes): void => {
    const labels = labelsOf(attributes);
    const id = JSON.stringify(labels);
    const count = (counts.get(id) ?? 0) + change;
    if (count === 0) counts.delete(id);
    else counts.set(id, count);
    metric.set(labels, count);
  };
  return { add };
}

/** Where a gauge has the counts that it shows, for all apps and copies of the package. */
const COUNTS = Symbol.for('nest-redis-lock.counts');

/** Returns the counts that a gauge shows. Its own are zero after `registry.resetMetrics()`. */
function countsOf(metric: Gauge & { [COUNTS]?: Map<string, number> }): Map<string, number> {
  const counts = metric[COUNTS] ?? new Map<string, number>();
  metric[COUNTS] = counts;
  return counts;
}

/** Names a metric as Prometheus does, with its unit: so does an OpenTelemetry Collector, and Prometheus for OTLP. */
function inPrometheus({ name, unit, description }: InstrumentDescription): InstrumentDescription {
  return { name: `${name.replaceAll('.', '_')}${unit === 's' ? '_seconds' : ''}`, unit, description };
}

/** @throws LockOptionsError */
function existing<Metric>(registry: Registry, name: string, labelNames: LabelNames): Metric | undefined {
  const metric = registry.getSingleMetric(name) as (Metric & { readonly labelNames?: readonly string[] }) | undefined;
  if (!metric || String(metric.labelNames) === String(labelNames)) return metric;
  throw new LockOptionsError(
    `The registry already has another metric with the name ${quoted(name)}. ` +
      'Give LockPrometheusModule.forRoot() a "registry" of its own, or remove that metric.',
  );
}

function labelsOf({ label, mode, module, queued, errorType }: LockAttributes): Record<string, string> {
  return {
    label,
    mode,
    ...(module !== undefined && { module }),
    ...(queued !== undefined && { queued: String(queued) }),
    ...(errorType !== undefined && { error_type: errorType }),
  };
}
