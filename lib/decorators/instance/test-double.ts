/** What the mock functions of Jest and Vitest, of Sinon and of node:test are known by. */
interface TestDouble {
  readonly _isMockFunction?: unknown;
  readonly isSinonProxy?: unknown;
  readonly mock?: { readonly constructor?: { readonly name?: unknown } };
}

/** Whether a test has put it in the place of a method. */
export function isTestDouble(value: unknown): boolean {
  if (typeof value !== 'function') return false;
  const { _isMockFunction, isSinonProxy, mock } = value as TestDouble;
  return _isMockFunction === true || isSinonProxy === true || mock?.constructor?.name === 'MockFunctionContext';
}
