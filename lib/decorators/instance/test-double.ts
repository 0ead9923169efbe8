/** The marks of mock functions of Jest and Vitest, of Sinon and of node:test. */
interface TestDouble {
  readonly _isMockFunction?: unknown;
  readonly isSinonProxy?: unknown;
  readonly mock?: { readonly constructor?: { readonly name?: unknown } };
}

/** Tells whether a value is a mock function that a test has put in the place of a method. */
export function isTestDouble(value: unknown): boolean {
  if (typeof value !== 'function') return false;
  const { _isMockFunction, isSinonProxy, mock } = value as TestDouble;
  return _isMockFunction === true || isSinonProxy === true || mock?.constructor?.name === 'MockFunctionContext';
}
