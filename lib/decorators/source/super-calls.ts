import type { AnyNode, CallExpression, Expression, MemberExpression, MethodDefinition, Super } from 'acorn';
import { classSource, type FunctionNode, functionSource, methodSource } from './class-source.js';
import { contains, nodesIn, textOf } from './source-nodes.js';

/**
 * Tells whether a method of this class calls the method that it overrides. Undefined when its source can't be found.
 */
export function callsSuper(prototype: object, name: string | symbol): boolean | undefined {
  const method = methodSource(prototype, name);
  return method && hasCall(method.value, isNamed(name, method, textIn(prototype)));
}

/** Tells the same of a function that is written in this class. Undefined when it is not written there. */
export function functionCallsSuper(prototype: object, name: string | symbol, text: string): boolean | undefined {
  const source = functionSource(prototype, text);
  return source && hasCall(source, isNamed(name));
}

/** Tells whether a class has a `this.run.bind(…)` or `super.run.bind(…)`. */
export function bindsOwn(prototype: object, name: string | symbol): boolean {
  return contains(classSource(prototype)?.body, (node) => {
    if (node.type !== 'CallExpression' || node.callee.type !== 'MemberExpression') return false;
    const { object, property, computed } = node.callee;
    if (computed || property.type !== 'Identifier' || property.name !== 'bind' || object.type !== 'MemberExpression')
      return false;
    const named = object.computed
      ? textOf(object.property)
      : object.property.type === 'Identifier' && object.property.name;
    return named === name && (object.object.type === 'ThisExpression' || object.object.type === 'Super');
  });
}

/** Tells whether a node is `super.run` or `super['run']`; in `async [RUN]() {}` also `super[RUN]`. */
type IsSuper = (node: Expression | Super) => boolean;

function isNamed(name: string | symbol, method?: MethodDefinition, text?: (node: AnyNode) => string): IsSuper {
  return (node) => {
    if (node.type !== 'MemberExpression' || node.object.type !== 'Super') return false;
    const { property, computed } = node;
    if (!computed) return property.type === 'Identifier' && property.name === name;
    return textOf(property) === name || (method?.computed === true && text?.(property) === text?.(method.key));
  };
}

/**
 * The variables by which older compile targets call `super.run(id)` in an async method: the generator inside has no
 * `super`.
 */
interface Aliases {
  /** `() => super.run` */
  readonly getters: ReadonlySet<string>;
  /** `(name) => super[name]` */
  readonly indexers: ReadonlySet<string>;
  /** `Object.create(null, { run: { get: () => super.run } })` */
  readonly holders: ReadonlySet<string>;
}

function hasCall(method: FunctionNode, isSuper: IsSuper): boolean {
  const aliases = aliasesIn(method, isSuper);
  const isMethod = (node: Expression | Super): boolean => isSuper(node) || isAlias(node, aliases, isSuper);
  const isCall = (node: AnyNode) =>
    node.type === 'CallExpression' && (isMethod(node.callee) || isMethod(appliedBy(node)));
  return contains(method.body, isCall, hasOtherSuper);
}

/** Inside a nested class or method, `super` is another one. */
function hasOtherSuper(node: AnyNode): boolean {
  return node.type === 'ClassBody' || (node.type === 'Property' && (node.method || node.kind !== 'init'));
}

/** Returns the `f` of `f.call(…)` and `f.apply(…)`. */
function appliedBy({ callee }: CallExpression): Expression | Super {
  if (callee.type !== 'MemberExpression' || callee.property.type !== 'Identifier') return callee;
  return ['call', 'apply'].includes(callee.property.name) ? callee.object : callee;
}

function isAlias(node: Expression | Super, { getters, indexers, holders }: Aliases, isSuper: IsSuper): boolean {
  if (node.type === 'MemberExpression') {
    const isHolder = node.object.type === 'Identifier' && holders.has(node.object.name);
    return isHolder && isSuper(ofSuper(node, node.property, node.computed));
  }
  if (node.type !== 'CallExpression' || node.callee.type !== 'Identifier') return false;
  const [name] = node.arguments;
  if (getters.has(node.callee.name)) return true;
  return (
    indexers.has(node.callee.name) && !!name && name.type !== 'SpreadElement' && isSuper(ofSuper(node, name, true))
  );
}

/** Returns the expression that the variable stands for. */
function ofSuper({ start, end }: AnyNode, property: MemberExpression['property'], computed: boolean): MemberExpression {
  return {
    type: 'MemberExpression',
    object: { type: 'Super', start, end },
    property,
    computed,
    optional: false,
    start,
    end,
  };
}

function aliasesIn(method: FunctionNode, isSuper: IsSuper): Aliases {
  const [getters, indexers, holders] = [new Set<string>(), new Set<string>(), new Set<string>()];
  for (const { id, init } of nodesIn(method.body, (node) => node.type === 'VariableDeclarator')) {
    if (id.type !== 'Identifier' || !init) continue;
    if (isGetter(init, isSuper)) getters.add(id.name);
    else if (isIndexer(init)) indexers.add(id.name);
    else if (init.type === 'CallExpression' && contains(init, (node) => isGetter(node, isSuper))) holders.add(id.name);
  }
  return { getters, indexers, holders };
}

function isGetter(node: AnyNode, isSuper: IsSuper): boolean {
  return node.type === 'ArrowFunctionExpression' && node.body.type !== 'BlockStatement' && isSuper(node.body);
}

function isIndexer(node: AnyNode): boolean {
  if (node.type !== 'ArrowFunctionExpression' || node.body.type !== 'MemberExpression') return false;
  const [parameter] = node.params;
  const { object, property } = node.body;
  if (object.type !== 'Super' || property.type !== 'Identifier' || parameter?.type !== 'Identifier') return false;
  return property.name === parameter.name;
}

function textIn(prototype: object): (node: AnyNode) => string {
  const text = classSource(prototype)?.text ?? '';
  return ({ start, end }) => text.slice(start, end);
}
