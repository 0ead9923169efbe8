/** Names a method: `AccountService.withdraw`. */
export function methodName(prototype: object, method: string | symbol): string {
  return `${prototype.constructor.name}.${String(method)}`;
}

/** Names a method as messages do: `AccountService.withdraw()`. */
export function shownMethod(prototype: object, method: string | symbol): string {
  return `${methodName(prototype, method)}()`;
}
