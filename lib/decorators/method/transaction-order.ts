/** The packages whose `@Transactional` puts a transaction around the whole of what stands below it. */
const TRANSACTIONAL = /[\\/](@nestjs-cls[\\/]transactional|typeorm-transactional)[\\/]/;

/** The frames that a decorator may be away. */
const FRAMES = 30;

/**
 * Notices that `@Transactional` is put around a locked method, so that it would commit when the key is free again.
 * Nothing shows it afterwards: it is a Proxy. But while the class is defined it copies the metadata of what it wraps,
 * which asks for the prototype.
 */
export class TransactionWatch {
  #isDefined = false;
  #seen: string | undefined;

  constructor() {
    queueMicrotask(() => (this.#isDefined = true));
  }

  /** The package whose transaction stands around the lock. */
  get seen(): string | undefined {
    return this.#seen;
  }

  getPrototypeOf(target: object): object | null {
    if (!this.#isDefined) this.#seen ??= TRANSACTIONAL.exec(stack())?.[1]?.replace('\\', '/');
    return Reflect.getPrototypeOf(target);
  }
}

function stack(): string {
  const usual = Error.stackTraceLimit;
  Error.stackTraceLimit = FRAMES;
  try {
    return new Error().stack ?? '';
  } finally {
    Error.stackTraceLimit = usual;
  }
}
