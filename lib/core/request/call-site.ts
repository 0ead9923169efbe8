/** The method that a call for a lock stands on. */
export interface CallSite {
  /** `AccountService.withdraw` */
  readonly method: string;
  /** Its key, as it is written there: `account:<userId>`. Undefined when a function makes the key. */
  readonly template: string | undefined;
}

/** The property of call options in which `@WithLock` puts the call site. A symbol, so that it is no option of users. */
const CALL_SITE = Symbol('the method that the call stands on');

/** Returns options that carry a call site. Their copies carry it too. */
export function withCallSite<Options extends object>(options: Options, site: CallSite): Options {
  return { ...options, [CALL_SITE]: site };
}

/** Returns the method that a call stands on; undefined for a call by hand. */
export function callSiteOf(options: object): CallSite | undefined {
  return (options as { readonly [CALL_SITE]?: CallSite })[CALL_SITE];
}
