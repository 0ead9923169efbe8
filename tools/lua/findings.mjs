import luaparse from 'luaparse';

/** What Redis gives to a script, as far as ours use it. Whatever else is not declared is a mistake. */
const OF_REDIS =
  'ARGV KEYS error ipairs math next pairs pcall redis select string table tonumber tostring type unpack'.split(' ');

const DECLARES_AS_UNUSED = /^_/;

/**
 * Finds undefined globals, assigned globals, locals that are never read, and locals that hide others, in a whole
 * script.
 *
 * @param {readonly string[]} constants what else it may name
 * @returns {{ line: number, text: string }[]}
 */
export function findingsIn(source, constants) {
  const known = new Set([...OF_REDIS, ...constants]);
  const findings = [];
  const report = (node, text) => findings.push({ line: node.loc.start.line, text });
  let chunk;
  try {
    chunk = luaparse.parse(source, { luaVersion: '5.1', locations: true, comments: false });
  } catch (error) {
    return [{ line: error.line, text: error.message }];
  }

  /** Of each open block: what it declares, by name. */
  const scopes = [];
  const declarationOf = (name) => scopes.findLast((scope) => scope.has(name))?.get(name);

  function declare(node) {
    if (!DECLARES_AS_UNUSED.test(node.name) && declarationOf(node.name))
      report(node, `"${node.name}" hides another local`);
    scopes.at(-1).set(node.name, { node, isRead: false });
  }

  function inScope(declared, ...parts) {
    scopes.push(new Map());
    declared.forEach(declare);
    parts.forEach(visit);
    for (const [name, { node, isRead }] of scopes.pop())
      if (!isRead && !DECLARES_AS_UNUSED.test(name)) report(node, `"${name}" is never read`);
  }

  function read(node) {
    const declaration = declarationOf(node.name);
    if (declaration) declaration.isRead = true;
    else if (!known.has(node.name)) report(node, `"${node.name}" is not defined`);
  }

  function assign(node) {
    if (node.type !== 'Identifier') visit(node);
    else if (!declarationOf(node.name)) report(node, `"${node.name}" is assigned, but not a local`);
  }

  const visits = {
    Chunk: ({ body }) => inScope([], body),
    DoStatement: ({ body }) => inScope([], body),
    WhileStatement: ({ condition, body }) => (visit(condition), inScope([], body)),
    RepeatStatement: ({ condition, body }) => inScope([], body, condition),
    IfClause: ({ condition, body }) => (visit(condition), inScope([], body)),
    ElseifClause: ({ condition, body }) => (visit(condition), inScope([], body)),
    ElseClause: ({ body }) => inScope([], body),
    ForNumericStatement: ({ variable, start, end, step, body }) => (
      visit([start, end, step]),
      inScope([variable], body)
    ),
    ForGenericStatement: ({ variables, iterators, body }) => (visit(iterators), inScope(variables, body)),
    LocalStatement: ({ variables, init }) => (visit(init), variables.forEach(declare)),
    AssignmentStatement: ({ variables, init }) => (visit(init), variables.forEach(assign)),
    FunctionDeclaration({ identifier, isLocal, parameters, body }) {
      if (identifier) (isLocal ? declare : assign)(identifier);
      inScope(
        parameters.filter(({ type }) => type === 'Identifier'),
        body,
      );
    },
    Identifier: read,
    MemberExpression: ({ base }) => visit(base),
    TableKeyString: ({ value }) => visit(value),
  };

  function visit(node) {
    if (Array.isArray(node)) node.forEach(visit);
    else if (node?.type && visits[node.type]) visits[node.type](node);
    else if (node?.type) Object.values(node).forEach((part) => typeof part === 'object' && visit(part));
  }

  visit(chunk);
  return findings;
}
