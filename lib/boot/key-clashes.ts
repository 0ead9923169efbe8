import { clashOf, type ReadTemplate, readTemplate, shapeOf } from '../decorators/key/template-clash.js';
import type { LockedMethod } from '../decorators/method/locked-methods.js';
import { shownMethod } from '../decorators/method/method-name.js';
import { mistake } from '../errors/mistakes.js';

/** Templates that can make the same key from different values. */
export interface Clashes {
  /** Clashes that stop the boot. */
  readonly mistakes: readonly string[];
  /** Clashes that may be meant. */
  readonly warnings: readonly string[];
}

/** A template, and a method that uses it. */
interface Use {
  readonly template: string;
  readonly read: ReadTemplate;
  readonly method: LockedMethod;
}

/** Compares the templates of new methods with each other, and with those of methods that were compared before. */
export function clashesOf(added: readonly LockedMethod[], before: readonly LockedMethod[]): Clashes {
  const known = [...usesOf(before).values()];
  const mistakes: string[] = [];
  const warnings: string[] = [];
  for (const use of usesOf(added).values()) {
    for (const other of known) {
      const clash = use.method.module === other.method.module ? clashOf(use.read, other.read) : undefined;
      if (clash?.isFixedText) warnings.push(fixedText(clash.key, use, other));
      else if (clash) mistakes.push(differentValues(clash.key, use, other));
    }
    known.push(use);
  }
  return { mistakes, warnings };
}

/** Returns one use of each shape: what holds for one template of a shape holds for all of them. */
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
  const what =
    `${shownUse(one)} and ${shownUse(other)} can make the same lock key, such as "${key}", from different values, ` +
    'so unrelated calls would wait for each other.';
  return mistake(what, [
    'Put ":" between all values. It is escaped inside values, so keys with ":" in different places differ.',
    'Begin the two keys with different words.',
    'If both name the same thing, give a function for one of them: its keys are not compared.',
  ]);
}

function fixedText(key: string, one: Use, other: Use): string {
  const what = `${shownUse(one)} and ${shownUse(other)} make the same lock key, "${key}", for one particular value.`;
  return mistake(what, [
    'If they name different things, begin the two keys with different words.',
    'If they name the same thing, give a function for the one without the value: its keys are not compared.',
  ]);
}

function shownUse({ template, method: { owner, name } }: Use): string {
  return `${JSON.stringify(template)} of ${shownMethod(owner, name)}`;
}
