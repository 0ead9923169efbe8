import { shown } from '../../errors/messages.js';
import { KeyTemplate, type TemplateContext } from './key-template.js';
import type { KeyPart, Placeholders } from './template-types.js';

/** The values that fill a template by hand: for `<id>` a value, for `<dto.id>` the object that has it. */
export type LockKeyValues<Template extends string> = {
  readonly [
    Inside in Placeholders<Template> as Inside extends `${infer Name}.${string}` ? Name : Inside
  ]: Inside extends `${string}.${string}` ? object : KeyPart;
};

type Given<Template extends string> = [Placeholders<Template>] extends [never]
  ? [values?: object]
  : [values: LockKeyValues<Template>];

/**
 * Makes the key that `@WithLock` makes from the same template, to acquire, inspect or force-unlock it by hand:
 * `locks.inspect(lockKey('pay-out:<id>', { id }))`.
 *
 * @param values one for each name in the template: `{ id }` for `<id>`, `{ dto }` for `<dto.id>`, `[id]` for `<0>`
 * @throws LockKeyError when a value is missing, empty or an object, or the key is too long
 * @throws LockOptionsError for a bad template, or values that are no object
 */
export function lockKey<const Template extends string>(template: Template, ...[values]: Given<Template>): string {
  const context: TemplateContext = {
    method: 'lockKey',
    find: (name) => (typeof values === 'object' && values !== null ? { index: 0, path: [name] } : undefined),
    forms: 'a non-empty template',
    examples: 'a name, <userId>; a path into it, <dto.id>',
    otherwise: 'write the key without lockKey()',
    unknownNames: () => ({
      what: `Their values must come in an object, not as ${shown(values)}`,
      remedies: ['Write lockKey("account:<id>", { id }).'],
    }),
  };
  return new KeyTemplate(template, context).fill([values]);
}
