import type { ArgumentPath, ParameterNames } from '../source/parameter-names.js';
import type { UnknownNames } from './key-template.js';
import { IN_EVERY_BUILD } from './minified.js';

/** What esbuild adds to a name that is taken. It begins with 2. */
const NUMBER = /^(?:[2-9]|[1-9]\d+)$/;

/**
 * Tells whether a parameter may have had another name in the source. esbuild, and so tsx, Vitest and many bundlers,
 * numbers a parameter whose name is also that of something at the top level of the file or bundle: `user` becomes
 * `user2`, and a parameter `user2` beside it `user22`. A template that names `<user2>` may mean the second one then.
 */
export function mayBeNumbered(name: string, names: ParameterNames): boolean {
  const sources = Array.from(name, (_, at) => name.slice(0, at)).filter((source) => isNumbered(name, source));
  return sources.some((source) => !names.has(source)) && hasNumbered(name, names);
}

/** Tells whether the name that `@Param` or the like gives to a parameter may be the numbered name of another one. */
export const mayBeNumberedElsewhere = ([name, { index }]: [string, ArgumentPath], names: ParameterNames): boolean =>
  !names.has(name) && [...names].some(([other, at]) => isNumbered(other, name) && at.index !== index);

/** Explains names that are not found because they have got a number; undefined when there are none such. */
export function numberedNames(unknown: readonly string[], names: ParameterNames): UnknownNames | undefined {
  if (!unknown.some((name) => hasNumbered(name, names))) return undefined;
  const given = [...names.keys()].join(', ');
  return {
    what:
      `In this build the parameters are called ${given}: esbuild, which tsx and many bundlers use, numbers those ` +
      'whose names are also at the top level of the file or bundle',
    remedies: [...IN_EVERY_BUILD, 'Give the parameter, or the other thing, another name in the source.'],
  };
}

const hasNumbered = (name: string, names: ParameterNames): boolean =>
  [...names.keys()].some((other) => isNumbered(other, name));

const isNumbered = (name: string, source: string): boolean =>
  source !== '' && name.startsWith(source) && NUMBER.test(name.slice(source.length));
