import { LockOptionsError } from '../../errors/lock-options.error.js';

/** The context that a standard decorator (TC39) gets instead of a name. */
export interface StandardContext {
  readonly kind: string;
  readonly name?: string | symbol;
  readonly private?: boolean;
}

export function isStandard(context: unknown): context is StandardContext {
  return typeof context === 'object' && context !== null && 'kind' in context;
}

/**
 * Refuses to work as a standard decorator.
 *
 * @throws LockOptionsError where the compiler has made one of it
 */
export function refuseStandard(decorator: string, context: unknown): void {
  if (isStandard(context)) throw notLegacy(decorator, context);
}

export function notLegacy(decorator: string, { kind, name = kind }: StandardContext): LockOptionsError {
  return new LockOptionsError(
    `@${decorator} on ${String(name)} was compiled as a standard decorator; ` +
      'Nest needs "experimentalDecorators": true in tsconfig.json.',
  );
}
