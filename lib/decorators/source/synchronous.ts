import type {
  CallExpression,
  Expression,
  Identifier,
  MemberExpression,
  MethodDefinition,
  Node,
  SequenceExpression,
  Statement,
} from 'acorn';
import { contains, memberName } from './source-nodes.js';

/**
 * Tells whether all work is done when a method returns: it is not async, and what it returns, if anything, is surely no
 * promise or stream. A method that only throws never returns.
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

/** Returns the name of the method whose result a method only passes on: `rows` for `return this.rows(id)`. */
export function passedOn({ value }: MethodDefinition): string | undefined {
  const [only, ...more] = value.body.body.filter((statement) => !isCounter(statement));
  if (more.length > 0 || only?.type !== 'ReturnStatement' || only.argument?.type !== 'CallExpression') return undefined;
  const { callee } = only.argument;
  const isOwn = callee.type === 'MemberExpression' && callee.object.type === 'ThisExpression' && !callee.computed;
  return isOwn && callee.property.type === 'Identifier' ? callee.property.name : undefined;
}

/** The helpers by which TypeScript, SWC and Babel write an `async *` method for a target before ES2018. */
const GENERATOR_HELPER = /\b(?:__asyncGenerator|_wrap_async_generator|_wrapAsyncGenerator)\d*\b/;

/** Tells whether the text of a method has such a helper, which a function inside it may use. */
export const mentionsGeneratorHelper = (text: string): boolean => GENERATOR_HELPER.test(text);

/** Tells whether a method is an `async *` method that was compiled for a target before ES2018. */
export function isLoweredGenerator({ value }: MethodDefinition): boolean {
  const last = value.body.body.at(-1);
  return !value.async && last?.type === 'ReturnStatement' && !!last.argument && helperIn(last.argument);
}

/** Finds a helper in `tslib_1.__asyncGenerator(…)`, `(0, tslib_1.__asyncGenerator)(…)`, `_wrap_async_generator(…).call(this)`. */
function helperIn(node: Node): boolean {
  switch (node.type) {
    case 'CallExpression':
      return helperIn((node as CallExpression).callee);
    case 'MemberExpression':
      return helperIn((node as MemberExpression).property) || helperIn((node as MemberExpression).object);
    case 'SequenceExpression':
      return (node as SequenceExpression).expressions.some(helperIn);
    case 'Identifier':
      return mentionsGeneratorHelper((node as Identifier).name);
    default:
      return false;
  }
}

/** Tells whether a statement is one of the counters that Istanbul puts before each other one: `cov_1().s[0]++`. */
function isCounter(statement: Statement): boolean {
  if (statement.type !== 'ExpressionStatement' || statement.expression.type !== 'UpdateExpression') return false;
  let counted: Node = statement.expression.argument;
  while (counted.type === 'MemberExpression') counted = (counted as MemberExpression).object;
  const counters = counted.type === 'CallExpression' ? (counted as CallExpression).callee : counted;
  return counters.type === 'Identifier' && (counters as Identifier).name.startsWith('cov_');
}

/**
 * Tells whether an expression is surely a plain value: a text, a number and the like, or an object literal. A variable
 * or a call may be anything.
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

/** The fields that make an object a promise, a stream or an iterator. */
const ASYNC_FIELDS = ['then', 'subscribe', 'next'];

const FUNCTIONS = ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression', 'ClassBody'];
