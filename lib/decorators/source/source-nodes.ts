import type { AnyNode, Expression, MethodDefinition, PrivateIdentifier, Property, PropertyDefinition } from 'acorn';

export type Named = MethodDefinition | PropertyDefinition | Property;

type Test = (node: AnyNode) => boolean;

/** Tells whether a node, or one inside it, passes the test. Does not look into nodes that pass `except`. */
export function contains(value: unknown, isIt: Test, except: Test = () => false): boolean {
  if (Array.isArray(value)) return value.some((one) => contains(one, isIt, except));
  if (!isNode(value) || except(value)) return false;
  return isIt(value) || Object.values(value).some((inner) => contains(inner, isIt, except));
}

/** Returns all nodes inside a node that pass the test. */
export function nodesIn<N extends AnyNode>(value: unknown, isIt: (node: AnyNode) => node is N): readonly N[] {
  const found: N[] = [];
  contains(value, (node) => {
    if (isIt(node)) found.push(node);
    return false;
  });
  return found;
}

/** Returns the name of a member as the source has it: `run`, `'run'`, `['run']`. Undefined for `[NAME]`. */
export function memberName({ key, computed }: Named): string | undefined {
  return computed ? textOf(key) : key.type === 'Identifier' ? key.name : textOf(key);
}

/** Returns the value of an expression that is a literal. */
export function textOf(node: Expression | PrivateIdentifier): string | undefined {
  if (node.type === 'Literal') return String(node.value);
  const isPlain = node.type === 'TemplateLiteral' && node.expressions.length === 0;
  return isPlain ? (node.quasis[0]?.value.cooked ?? undefined) : undefined;
}

function isNode(value: unknown): value is AnyNode {
  return typeof value === 'object' && value !== null && 'type' in value;
}
