import type { CallList, CallLists, CallsAnswer, OwnCall } from '../../core/list/calls-question.js';
import { fieldsOf } from '../../core/list/fields.js';
import { amountOf, listOf, numberOf, textOf, textsOf } from './fields.js';

/** Reads which calls of a process hold a lock or wait. What it does not say reads as nothing. */
export function readCalls(value: unknown): CallsAnswer {
  const { held, waiting, byText, byKey, queues, nested } = fieldsOf(value);
  return {
    held: amountOf(held),
    waiting: amountOf(waiting),
    byText: listOf(byText, readLists),
    byKey: listOf(byKey, readLists),
    queues: listOf(queues, (item) => {
      const [key, waiting] = listOf(item, (part) => part);
      return [textOf(key) ?? '', amountOf(waiting)] as const;
    }),
    nested: listOf(nested, readCall),
  };
}

function readLists(value: unknown): CallLists {
  const { held, waiting } = fieldsOf(value);
  return { held: readList(held), waiting: readList(waiting) };
}

function readList(value: unknown): CallList {
  const { total, items } = fieldsOf(value);
  return { total: amountOf(total), items: listOf(items, readCall) };
}

function readCall(value: unknown): OwnCall {
  const { keys, mode, ms, label, template, method, traceId, fence, leaseLeftMs, isOverdue, id, holds } =
    fieldsOf(value);
  return {
    keys: textsOf(keys),
    mode: mode === 'read' || mode === 'permit' ? mode : 'exclusive',
    ms: amountOf(ms),
    label: textOf(label),
    template: textOf(template),
    method: textOf(method),
    traceId: textOf(traceId),
    fence: numberOf(fence),
    leaseLeftMs: numberOf(leaseLeftMs),
    isOverdue: isOverdue === true ? true : undefined,
    id: numberOf(id),
    holds: holds ? textsOf(holds) : undefined,
  };
}
