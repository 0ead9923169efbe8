import type { Attributes, Histogram, Meter } from '@opentelemetry/api';
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

/** Makes the metrics of a meter. Their buckets are advice: a view of the app may say otherwise. */
export function openTelemetryInstruments(meter: Meter): LockInstruments {
  const { acquireDuration, holdDuration, lost, held, waiting, leaseMargin } = LOCK_INSTRUMENTS;
  return {
    acquireDuration: histogram(meter, acquireDuration),
    holdDuration: histogram(meter, holdDuration),
    lost: counter(meter, lost),
    held: upDownCounter(meter, held),
    waiting: upDownCounter(meter, waiting),
    leaseMargin: histogram(meter, leaseMargin),
  };
}

function histogram(meter: Meter, { name, unit, description }: InstrumentDescription): DurationRecorder {
  const advice = { explicitBucketBoundaries: [...BUCKETS] };
  const instrument: Histogram = meter.createHistogram(name, { unit, description, advice });
  return { record: (seconds, attributes) => instrument.record(seconds, attributesOf(attributes)) };
}

function counter(meter: Meter, { name, unit, description }: InstrumentDescription): UpCounter {
  const instrument = meter.createCounter(name, { unit, description });
  return { add: (change, attributes) => instrument.add(change, attributesOf(attributes)) };
}

function upDownCounter(meter: Meter, { name, unit, description }: InstrumentDescription): UpDownCounter {
  const instrument = meter.createUpDownCounter(name, { unit, description });
  return { add: (change, attributes) => instrument.add(change, attributesOf(attributes)) };
}

function attributesOf({ label, mode, module, queued, errorType }: LockAttributes): Attributes {
  return {
    label,
    mode,
    ...(module !== undefined && { module }),
    ...(queued !== undefined && { queued }),
    ...(errorType !== undefined && { 'error.type': errorType }),
  };
}
