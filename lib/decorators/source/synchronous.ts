import type { Expression, MethodDefinition } from 'acorn';
import { contains, memberName } from './source-nodes.js';

/**
 * Whether all is done when it returns: it is not async, and what it returns, if anything, is surely no promise or
 * stream. One that only throws never returns.
 */
export function isSynchronous({ value }: MethodDefinition): boolean {
  if (value.async || value.body.body.at(-1)?.type === 'ThrowStatement') return false;
  const returnsMore = contains(
    value.body,
    (node) => node.type === 'ReturnStatement' && !!node.argument && !isPlain(node.argument),
    ({ type }) => FUNCTIONS.includes(type),
  );
  return value.generator || !returnsMore;
}

/** The method of the same object whose result it returns, and nothing else: `return this.rows(id)`. */
export function passedOn({ value }: MethodDefinition): string | undefined {
  const [only, ...more] = value.body.body;
  if (more.length > 0 || only?.type !== 'ReturnStatement' || only.argument?.type !== 'CallExpression') return undefined;
  const { callee } = only.argument;
  const isOwn = callee.type === 'MemberExpression' && callee.object.type === 'ThisExpression' && !callee.computed;
  return isOwn && callee.property.type === 'Identifier' ? callee.property.name : undefined;
}

/**
 * Whether an expression is a text, a number and the like, or an object that is written out here. Of a variable or a
 * call, nobody knows.
 */
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
      return node.properties.every(
        (property) =>
          property.type === 'Property' && !property.computed && !ASYNC_FIELDS.includes(memberName(property) ?? ''),
      );
    default:
      return false;
  }
}

/** What makes an object a promise, a stream or an iterator. */
const ASYNC_FIELDS = ['then', 'subscribe', 'next'];

const FUNCTIONS = ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression', 'ClassBody'];
