import type { Pattern } from 'acorn';
import { classSource, isFunction, methodSource } from './class-source.js';
import { plainMethod } from './plain-method.js';
import { nodesIn } from './source-nodes.js';

/** Where the value of a name is: which argument, and the path into it. */
export interface ArgumentPath {
  readonly index: number;
  readonly path: readonly string[];
}

/** The names of a method's parameters, destructured ones included. */
export type ParameterNames = ReadonlyMap<string, ArgumentPath>;

const NONE: ParameterNames = new Map();

/**
 * Reads the parameter names of a method from the source of its class. They may be minified; there are none where the
 * source can't be read.
 */
export function parameterNames(prototype: object, method: string | symbol): ParameterNames {
  const plain = plainMethod(prototype, method);
  if (plain) return new Map(plain.parameters.map((name, index) => [name, { index, path: [] }]));
  const source = methodSource(prototype, method);
  return source ? namesOf(source.value.params) : NONE;
}

/**
 * Returns the names of the parameters and variables in a class, which a minifier would have shortened. There are none
 * where the source can't be read.
 */
export function localNames(prototype: object): readonly string[] {
  const body = classSource(prototype)?.body;
  const patterns = [
    ...nodesIn(body, isFunction).flatMap(({ params }) => params),
    ...nodesIn(body, (node) => node.type === 'VariableDeclarator').map(({ id }) => id),
    ...nodesIn(body, (node) => node.type === 'CatchClause').flatMap(({ param }) => param ?? []),
  ];
  return [...namesOf(patterns).keys()];
}

function namesOf(parameters: readonly Pattern[]): ParameterNames {
  const names = new Map<string, ArgumentPath>();
  parameters.forEach((pattern, index) => collect(pattern, { index, path: [] }, names));
  return names;
}

function collect(pattern: Pattern | null, at: ArgumentPath, names: Map<string, ArgumentPath>): void {
  const into = (segment: string): ArgumentPath => ({ index: at.index, path: [...at.path, segment] });
  switch (pattern?.type) {
    case 'Identifier':
      names.set(pattern.name, at);
      break;
    case 'AssignmentPattern':
      collect(pattern.left, at, names);
      break;
    case 'ArrayPattern':
      pattern.elements.forEach((element, index) => collect(element, into(String(index)), names));
      break;
    case 'ObjectPattern':
      for (const property of pattern.properties) {
        if (property.type === 'Property' && !property.computed && property.key.type === 'Identifier') {
          collect(property.value, into(property.key.name), names);
        }
      }
      break;
  }
}
