import 'reflect-metadata';

type Method = (...args: unknown[]) => unknown;

/**
 * Puts `call` around a method. The result is a Proxy, so `name` and `length` stay, and it carries the metadata that
 * decorators below have set, so the order of decorators does not matter.
 */
export function wrapMethod(method: Method, call: (method: Method, self: object, args: unknown[]) => unknown): Method {
  const wrapped = new Proxy(method, { apply: (target, self: object, args: unknown[]) => call(target, self, args) });
  for (const key of Reflect.getMetadataKeys(method) as unknown[]) {
    Reflect.defineMetadata(key, Reflect.getMetadata(key, method), wrapped);
  }
  return wrapped;
}
