import type { SparseCounts } from '../activity/histogram.js';
import type { SentLabel, SentSlot } from '../activity/label-times.js';
import type {
  FilteredRows,
  KeyRows,
  ProcessReport,
  ReportQuestion,
  SentCall,
  SentEvent,
  SentHotKey,
  SentList,
  SentTimes,
} from '../activity/process-report.js';
import { fieldsOf } from '../../core/list/fields.js';
import { amountOf, listOf, numberOf, textOf, textsOf } from './fields.js';

/** Reads what a process reports. What it does not say reads as nothing. */
export function readReport(value: unknown): ProcessReport {
  const report = fieldsOf(value);
  const margin = fieldsOf(report['leaseMargin']);
  return {
    uptimeMs: amountOf(report['uptimeMs']),
    held: amountOf(report['held']),
    waiting: amountOf(report['waiting']),
    acquiredPerSecond: amountOf(report['acquiredPerSecond']),
    lostByReason: Object.fromEntries(
      Object.entries(fieldsOf(report['lostByReason']))
        .slice(0, 10)
        .map(([reason, count]) => [reason.slice(0, 20), amountOf(count)]),
    ),
    leaseMargin: report['leaseMargin']
      ? { ms: amountOf(margin['ms']), shareOfLease: amountOf(margin['shareOfLease']) }
      : undefined,
    rows: listOf(report['rows'], readRows),
    keyRows: listOf(report['keyRows'], readKeyRows),
    queues: listOf(report['queues'], (item) => {
      const [key, waiting] = listOf(item, (part) => part);
      return [textOf(key) ?? '', amountOf(waiting)] as const;
    }),
    waitingHolders: listOf(report['waitingHolders'], readCall),
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
    ...([number, timeouts, unavailable, aborted, lost].map(amountOf) as [number, number, number, number, number]),
    ...[amountOf(waitSum), readCounts(wait), amountOf(holdSum), readCounts(hold)],
  ] as unknown as SentSlot;
  return [textOf(label) ?? '', sent];
}

const readCounts = (value: unknown): SparseCounts => listOf(value, amountOf);

function readRows(value: unknown): FilteredRows {
  const { held, waiting, hotKeys, losses } = fieldsOf(value);
  return {
    held: readList(held),
    waiting: readList(waiting),
    hotKeys: listOf(hotKeys, readHotKey),
    losses: listOf(losses, readEvent),
  };
}

function readKeyRows(value: unknown): KeyRows {
  const { held, waiting, history } = fieldsOf(value);
  return { held: readList(held), waiting: readList(waiting), history: listOf(history, readEvent) };
}

function readList(value: unknown): SentList<SentCall> {
  const { total, items } = fieldsOf(value);
  return { total: amountOf(total), items: listOf(items, readCall) };
}

function readCall(value: unknown): SentCall {
  const call = fieldsOf(value);
  const { mode } = call;
  return {
    ...readCaller(value),
    id: amountOf(call['id']),
    mode: mode === 'read' || mode === 'permit' ? mode : 'exclusive',
    ms: amountOf(call['ms']),
    fence: numberOf(call['fence']),
    leaseLeftMs: numberOf(call['leaseLeftMs']),
    isOverdue: call['isOverdue'] === true ? true : undefined,
    holds: call['holds'] ? textsOf(call['holds']) : undefined,
  };
}

function readEvent(value: unknown): SentEvent {
  const event = fieldsOf(value);
  return {
    ...readCaller(value),
    type: textOf(event['type']) ?? '',
    agoMs: amountOf(event['agoMs']),
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

function readCaller(value: unknown): Pick<SentCall, 'keys' | 'label' | 'template' | 'method' | 'traceId'> {
  const { keys, label, template, method, traceId } = fieldsOf(value);
  return {
    keys: textsOf(keys),
    label: textOf(label),
    template: textOf(template),
    method: textOf(method),
    traceId: textOf(traceId),
  };
}
