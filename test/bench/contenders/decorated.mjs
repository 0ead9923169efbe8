/** Puts a method decorator on, as TypeScript does with `experimentalDecorators`: these files are plain JavaScript. */
export function decorated(type, method, decorator) {
  const descriptor = Object.getOwnPropertyDescriptor(type.prototype, method);
  Object.defineProperty(type.prototype, method, decorator(type.prototype, method, descriptor) ?? descriptor);
}
