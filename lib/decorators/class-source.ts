import { parse, type AnyNode, type ClassBody, type ClassDeclaration, type Expression, type MethodDefinition, type Property } from 'acorn';

/** In brackets a class is an expression, which may be anonymous. */
const BEFORE = '(';

const parsedClasses = new WeakMap<object, ReadonlyMap<string, MethodDefinition>>();

/**
 * Finds a method in the source of its class. (The source of the method itself is lost when another decorator wraps it
 * first.) Undefined when the source can't be read.
 */
export function methodSource(prototype: object, method: string | symbol): MethodDefinition | undefined {
  let methods = parsedClasses.get(prototype);
  if (!methods) parsedClasses.set(prototype, (methods = readClass(prototype.constructor.toString())));
  return methods.get(String(method));
}

/** Whether it calls the method that it overrides: `super.name(…)`, anywhere inside. */
export function callsSuper({ value }: MethodDefinition, name: string | symbol): boolean {
  return contains(value.body, (node) => node.type === 'MemberExpression' && node.object.type === 'Super' && node.property.type === 'Identifier' && node.property.name === name);
}

/** Whether a method of this class is this very function, and not what another decorator has put in its place. */
export function isSourceOf({ start, end }: MethodDefinition, prototype: object, method: (...args: unknown[]) => unknown): boolean {
  return method.toString() === prototype.constructor.toString().slice(start - BEFORE.length, end - BEFORE.length);
}

/** Whether all is done when it returns: it is not async, and what it returns, if anything, is surely no promise or stream. One that only throws never returns. */
export function isSynchronous({ value }: MethodDefinition): boolean {
  if (value.async || value.body.body.at(-1)?.type === 'ThrowStatement') return false;
  return value.generator || !contains(value.body, (node) => node.type === 'ReturnStatement' && !!node.argument && !isPlain(node.argument), FUNCTIONS);
}

/** Whether an expression is a text, a number and the like, or an object that is written out here. Of a variable or a call, nobody knows. */
function isPlain(node: Expression): boolean {
  switch (node.type) {
    case 'Literal':
    case 'TemplateLiteral':
    case 'BinaryExpression':
    case 'UnaryExpression':
    case 'UpdateExpression':
    case 'ArrayExpression':
      return true;
    case 'Identifier':
      return node.name === 'undefined';
    case 'LogicalExpression':
      return isPlain(node.left) && isPlain(node.right);
    case 'ConditionalExpression':
      return isPlain(node.consequent) && isPlain(node.alternate);
    case 'ObjectExpression':
      return node.properties.every((property) => property.type === 'Property' && !property.computed && !ASYNC_FIELDS.includes(nameOf(property)));
    default:
      return false;
  }
}

/** What makes an object a promise, a stream or an iterator. */
const ASYNC_FIELDS = ['then', 'subscribe', 'next'];

const FUNCTIONS = ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression', 'ClassBody'];

function contains(value: unknown, isIt: (node: AnyNode) => boolean, but: readonly string[] = []): boolean {
  if (Array.isArray(value)) return value.some((one) => contains(one, isIt, but));
  if (typeof value !== 'object' || value === null || !('type' in value)) return false;
  const node = value as AnyNode;
  if (but.includes(node.type)) return false;
  return isIt(node) || Object.values(node).some((inner) => contains(inner, isIt, but));
}

function readClass(source: string): ReadonlyMap<string, MethodDefinition> {
  const body = classBody(source);
  const methods = (body?.body ?? []).filter((node): node is MethodDefinition => node.type === 'MethodDefinition' && !node.static && !node.computed);
  return new Map(methods.map((node) => [nameOf(node), node]));
}

function classBody(source: string): ClassBody | undefined {
  try {
    const [statement] = parse(`${BEFORE}${source})`, { ecmaVersion: 'latest', sourceType: 'module', checkPrivateFields: false }).body;
    if (statement?.type !== 'ExpressionStatement' || statement.expression.type !== 'ClassExpression') return undefined;
    return (statement.expression as unknown as ClassDeclaration).body;
  } catch {
    return undefined;
  }
}

function nameOf({ key }: MethodDefinition | Property): string {
  if (key.type === 'Identifier') return key.name;
  return key.type === 'Literal' ? String(key.value) : '';
}
