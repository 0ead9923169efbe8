/** A method with `@WithLock`, as `LockService.methods()` lists it. */
export interface LockedMethodInfo {
  readonly className: string;
  readonly method: string;
  /** The templates of its keys. Undefined where a function makes the keys. */
  readonly templates: readonly string[] | undefined;
  readonly scope: 'call' | 'request';
}
