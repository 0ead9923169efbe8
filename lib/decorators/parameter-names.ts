import { parse, type ClassBody, type ClassDeclaration, type MethodDefinition, type Pattern } from 'acorn';

/** Where the value of a name is found: which argument, and the path into it. */
export interface ArgumentPath {
  readonly index: number;
  readonly path: readonly string[];
}

/** The names a method's parameters bring, destructured ones included. */
export type ParameterNames = ReadonlyMap<string, ArgumentPath>;

const NONE: ParameterNames = new Map();
const parsedClasses = new WeakMap<object, ReadonlyMap<string, ParameterNames>>();

/**
 * Reads the parameter names of a method from the source of its class. (The source of the method itself is lost when
 * another decorator wraps it first.) A source that can't be read, or a minified one, just has other names or none.
 */
export function parameterNames(prototype: object, method: string | symbol): ParameterNames {
  let methods = parsedClasses.get(prototype);
  if (!methods) parsedClasses.set(prototype, (methods = readClass(prototype.constructor.toString())));
  return methods.get(String(method)) ?? NONE;
}

function readClass(source: string): ReadonlyMap<string, ParameterNames> {
  const body = classBody(source);
  const methods = (body?.body ?? []).filter((node): node is MethodDefinition => node.type === 'MethodDefinition' && !node.static && !node.computed);
  return new Map(methods.map((node) => [nameOf(node), namesOf(node.value.params)]));
}

function classBody(source: string): ClassBody | undefined {
  try {
    // In brackets it is an expression, which may be anonymous.
    const [statement] = parse(`(${source})`, { ecmaVersion: 'latest', sourceType: 'module', checkPrivateFields: false }).body;
    if (statement?.type !== 'ExpressionStatement' || statement.expression.type !== 'ClassExpression') return undefined;
    return (statement.expression as unknown as ClassDeclaration).body;
  } catch {
    return undefined;
  }
}

function nameOf({ key }: MethodDefinition): string {
  if (key.type === 'Identifier') return key.name;
  return key.type === 'Literal' ? String(key.value) : '';
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
