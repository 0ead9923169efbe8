/** MikroORM has other decorators in these packages, too. */
const MIKRO_ORM = /@mikro-orm[\\/](?:core|decorators)(?=[\\/]\w+[\\/]Transactional\.)/.source;
/** The packages whose `@Transactional` puts a transaction around everything below it. */
const TRANSACTIONAL = new RegExp(`[\\\\/](@nestjs-cls[\\\\/]transactional|typeorm-transactional|${MIKRO_ORM})[\\\\/]`);

/** How many frames a decorator may be away. */
const FRAMES = 30;

/**
 * Notices that `@Transactional` is put around a locked method, so the transaction would commit after the lock is
 * released. Nothing shows that afterwards. But while the class is defined, it looks at what it wraps: it copies the
 * metadata, which reads the prototype, or asks the constructor whether the method is async.
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

  /** Notes who looks at the locked method. */
  look(): void {
    if (!this.#isDefined) this.#seen ??= TRANSACTIONAL.exec(stack())?.[1]?.replace('\\', '/');
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
