import { clashOf, type ReadTemplate, readTemplate, shapeOf } from '../decorators/key/template-clash.js';
import type { LockedMethod } from '../decorators/method/locked-methods.js';
import { shownMethod } from '../decorators/method/method-name.js';
import { mistake } from '../errors/mistakes.js';

/** What is to be told of templates that can make one key of different values. */
export interface Clashes {
  /** What the app does not start with. */
  readonly mistakes: readonly string[];
  /** What may be meant. */
  readonly warnings: readonly string[];
}

/** A template, and a method that it stands on. */
interface Use {
  readonly template: string;
  readonly read: ReadTemplate;
  readonly method: LockedMethod;
}

/** Compares the templates of methods with each other, and with those of methods that were compared before. */
export function clashesOf(fresh: readonly LockedMethod[], before: readonly LockedMethod[]): Clashes {
  const known = [...usesOf(before).values()];
  const mistakes: string[] = [];
  const warnings: string[] = [];
  for (const use of usesOf(fresh).values()) {
    for (const other of known) {
      const clash = use.method.module === other.method.module ? clashOf(use.read, other.read) : undefined;
      if (clash?.isFixedText) warnings.push(fixedText(clash.key, use, other));
      else if (clash) mistakes.push(differentValues(clash.key, use, other));
    }
    known.push(use);
  }
  return { mistakes, warnings };
}

/** One use for each shape: what holds for one holds for all of them. */
function usesOf(methods: readonly LockedMethod[]): ReadonlyMap<string, Use> {
  const uses = new Map<string, Use>();
  for (const method of methods) {
    if (method.mistakes) continue;
    for (const template of [method.key].flat()) {
      if (typeof template !== 'string') continue;
      const shape = `${method.module} ${shapeOf(template)}`;
      if (!uses.has(shape)) uses.set(shape, { template, read: readTemplate(template), method });
    }
  }
  return uses;
}

function differentValues(key: string, one: Use, other: Use): string {
  return mistake(
    `${shownUse(one)} and ${shownUse(other)} make one lock key, such as "${key}", of different values, so that calls which have nothing to do with each other would wait for each other.`,
    [
      'Put ":" between all values: it is escaped in them, so two keys with ":" in other places differ.',
      'Begin the two keys with different words.',
      'If both name one thing, give a function for one of them: its keys are not compared.',
    ],
  );
}

function fixedText(key: string, one: Use, other: Use): string {
  return mistake(`${shownUse(one)} and ${shownUse(other)} make one lock key, "${key}", where a value says so.`, [
    'If they name different things, begin the two keys with different words.',
    'If they name one thing, give a function for the one without the value: its keys are not compared.',
  ]);
}

function shownUse({ template, method: { owner, name } }: Use): string {
  return `${JSON.stringify(template)} of ${shownMethod(owner, name)}`;
}
