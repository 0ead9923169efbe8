import type { AnyNode, Expression, MethodDefinition, PrivateIdentifier, Property, PropertyDefinition } from 'acorn';

export type Named = MethodDefinition | PropertyDefinition | Property;

type Test = (node: AnyNode) => boolean;

/** Whether a node, or one inside of it, is what is looked for. It does not look into those that `but` names. */
export function contains(value: unknown, isIt: Test, but: Test = () => false): boolean {
  if (Array.isArray(value)) return value.some((one) => contains(one, isIt, but));
  if (!isNode(value) || but(value)) return false;
  return isIt(value) || Object.values(value).some((inner) => contains(inner, isIt, but));
}

/** All nodes inside of a node that are what is looked for. */
export function nodesIn<N extends AnyNode>(value: unknown, isIt: (node: AnyNode) => node is N): readonly N[] {
  const found: N[] = [];
  contains(value, (node) => {
    if (isIt(node)) found.push(node);
    return false;
  });
  return found;
}

/** The name of a member where the source says it: `run`, `'run'`, `['run']`. Undefined for `[NAME]`. */
export function memberName({ key, computed }: Named): string | undefined {
  return computed ? textOf(key) : key.type === 'Identifier' ? key.name : textOf(key);
}

/** What an expression is, where it is written out. */
export function textOf(node: Expression | PrivateIdentifier): string | undefined {
  if (node.type === 'Literal') return String(node.value);
  const isPlain = node.type === 'TemplateLiteral' && node.expressions.length === 0;
  return isPlain ? (node.quasis[0]?.value.cooked ?? undefined) : undefined;
}

function isNode(value: unknown): value is AnyNode {
  return typeof value === 'object' && value !== null && 'type' in value;
}
