import type {
  AnyNode,
  ArrowFunctionExpression,
  ClassBody,
  ClassDeclaration,
  FunctionExpression,
  MethodDefinition,
  PropertyDefinition,
} from 'acorn';
import { classText, ownMethod, textOf } from './class-text.js';
import { parsed } from './parser.js';
import { memberName, nodesIn } from './source-nodes.js';

/** The parsed source of a class, with the text that the positions of its nodes refer to. */
export interface ClassSource {
  readonly text: string;
  readonly body: ClassBody;
}

export type FunctionNode = FunctionExpression | ArrowFunctionExpression;

const parsedClasses = new WeakMap<object, ClassSource | 'unreadable'>();

/** Returns the source of a prototype's class; undefined when it can't be read, or there is no class. */
export function classSource(prototype: object): ClassSource | undefined {
  let source = parsedClasses.get(prototype);
  if (!source) parsedClasses.set(prototype, (source = readClass(prototype) ?? 'unreadable'));
  return source === 'unreadable' ? undefined : source;
}

/**
 * Finds a method in the source of its class: by its own text, so a computed name does not matter; otherwise by its
 * name, because a decorator that wraps the method first hides its text. Undefined when it can't be found.
 */
export function methodSource(prototype: object, method: string | symbol): MethodDefinition | undefined {
  const source = classSource(prototype);
  if (!source) return undefined;
  const methods = source.body.body
    .filter((node): node is MethodDefinition => node.type === 'MethodDefinition' && !node.static)
    .reverse();
  const text = textOf(ownMethod(prototype, method));
  return (
    methods.find((node) => source.text.slice(node.start, node.end) === text) ??
    methods.find((node) => memberName(node) === method)
  );
}

/** Finds the field of a class that hides the method of this name. */
export function fieldSource(prototype: object, name: string | symbol): PropertyDefinition | undefined {
  return classSource(prototype)?.body.body.find(
    (node): node is PropertyDefinition =>
      node.type === 'PropertyDefinition' && !node.static && memberName(node) === name,
  );
}

/** Finds a function that is written inside a class, such as in a field. */
export function functionSource(prototype: object, text: string): FunctionNode | undefined {
  const source = classSource(prototype);
  return nodesIn(source?.body, isFunction).find((node) => source?.text.slice(node.start, node.end) === text);
}

/**
 * Tells whether a method is the function in the source of its class, and not one that another decorator has put in its
 * place.
 */
export function isSourceOf(
  { start, end }: MethodDefinition,
  prototype: object,
  method: (...args: unknown[]) => unknown,
): boolean {
  return method.toString() === classSource(prototype)?.text.slice(start, end);
}

/** Tells whether a node is a function that is a value, such as a method. */
export function isFunction(node: AnyNode): node is FunctionNode {
  return node.type === 'FunctionExpression' || node.type === 'ArrowFunctionExpression';
}

function readClass(prototype: object): ClassSource | undefined {
  const ownText = classText(prototype);
  if (ownText === undefined) return undefined;
  // In brackets a class is an expression, which may be anonymous.
  const text = `(${ownText})`;
  const [statement] = parsed(text)?.body ?? [];
  if (statement?.type !== 'ExpressionStatement' || statement.expression.type !== 'ClassExpression') return undefined;
  return { text, body: (statement.expression as unknown as ClassDeclaration).body };
}
