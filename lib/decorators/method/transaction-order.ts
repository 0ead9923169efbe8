/** The packages whose `@Transactional` puts a transaction around everything below it. */
const TRANSACTIONAL = /[\\/](@nestjs-cls[\\/]transactional|typeorm-transactional)[\\/]/;

/** How many frames a decorator may be away. */
const FRAMES = 30;

/**
 * Notices that `@Transactional` is put around a locked method, so the transaction would commit after the lock is
 * released. Nothing shows that afterwards, because `@Transactional` is a Proxy. But while the class is defined, it
 * copies the metadata of what it wraps, and that reads the prototype.
 */
export class TransactionWatch {
  #isDefined = false;
  #seen: string | undefined;

  constructor() {
    queueMicrotask(() => (this.#isDefined = true));
  }

  /** The package whose transaction is around the lock. */
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
