import { fieldsOf } from '../../core/list/fields.js';
import type { SparseCounts } from '../activity/histogram.js';
import type { SentLabel, SentSlot } from '../activity/label-times.js';
import type {
  FilteredPast,
  ProcessReport,
  ReportQuestion,
  SentEvent,
  SentHotKey,
  SentTimes,
} from '../activity/process-report.js';
import { amountOf, listOf, numberOf, textOf, textsOf } from './fields.js';

/** Reads what a process reports. What it does not say reads as nothing. */
export function readReport(value: unknown): ProcessReport {
  const report = fieldsOf(value);
  const margin = fieldsOf(report['leaseMargin']);
  return {
    uptimeMs: amountOf(report['uptimeMs']),
    acquiredPerSecond: amountOf(report['acquiredPerSecond']),
    lostByReason: Object.fromEntries(
      Object.entries(fieldsOf(report['lostByReason']))
        .slice(0, 10)
        .map(([reason, count]) => [reason.slice(0, 20), amountOf(count)]),
    ),
    leaseMargin: report['leaseMargin']
      ? { ms: amountOf(margin['ms']), shareOfLease: amountOf(margin['shareOfLease']) }
      : undefined,
    byFilter: listOf(report['byFilter'], readFiltered),
    histories: listOf(report['histories'], (events) => listOf(events, readEvent)),
    times: readTimes(report['times']),
  };
}

/** Reads what the page of another process asks. */
export function readQuestion(value: unknown): ReportQuestion {
  const { filters, keys, slotsFrom } = fieldsOf(value);
  return { filters: textsOf(filters), keys: textsOf(keys), slotsFrom: amountOf(slotsFrom) };
}

export function readTimes(value: unknown): SentTimes {
  const { from, labels } = fieldsOf(value);
  return { from: amountOf(from), labels: listOf(labels, readLabel) };
}

function readLabel(value: unknown): SentLabel {
  const [label, slot] = listOf(value, (part) => part);
  const [number, timeouts, unavailable, aborted, lost, waitSum, wait, holdSum, hold] = listOf(slot, (part) => part);
  const sent: SentSlot = [
    // Slots between the slots would be without end.
    Math.floor(amountOf(number)),
    ...[timeouts, unavailable, aborted, lost].map(amountOf),
    ...[amountOf(waitSum), readCounts(wait), amountOf(holdSum), readCounts(hold)],
  ] as unknown as SentSlot;
  return [textOf(label) ?? '', sent];
}

const readCounts = (value: unknown): SparseCounts => listOf(value, amountOf);

function readFiltered(value: unknown): FilteredPast {
  const { hotKeys, losses } = fieldsOf(value);
  return { hotKeys: listOf(hotKeys, readHotKey), losses: listOf(losses, readEvent) };
}

function readEvent(value: unknown): SentEvent {
  const event = fieldsOf(value);
  return {
    type: textOf(event['type']) ?? '',
    keys: textsOf(event['keys']),
    agoMs: amountOf(event['agoMs']),
    label: textOf(event['label']),
    template: textOf(event['template']),
    method: textOf(event['method']),
    traceId: textOf(event['traceId']),
    fence: numberOf(event['fence']),
    waitedMs: numberOf(event['waitedMs']),
    heldMs: numberOf(event['heldMs']),
    detail: textOf(event['detail']),
    by: textOf(event['by']),
    why: textOf(event['why']),
  };
}

function readHotKey(value: unknown): SentHotKey {
  const { key, acquired, timeouts, waitedMs, label } = fieldsOf(value);
  return {
    key: textOf(key) ?? '',
    acquired: amountOf(acquired),
    timeouts: amountOf(timeouts),
    waitedMs: amountOf(waitedMs),
    label: textOf(label),
  };
}
