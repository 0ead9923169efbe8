/** MikroORM has other decorators in these packages, too. */
const MIKRO_ORM = /@mikro-orm[\\/](?:core|decorators)(?=[\\/]\w+[\\/]Transactional\.)/.source;
/** The packages whose `@Transactional` puts a transaction around everything below it. */
const TRANSACTIONAL = new RegExp(`[\\\\/](@nestjs-cls[\\\\/]transactional|typeorm-transactional|${MIKRO_ORM})[\\\\/]`);

/** How many frames to look at: two are of this file, and a decorator reads the method itself, or in a helper. */
const FRAMES = 4;

/**
 * Notices that `@Transactional` stands above a locked method, so the transaction would commit after the lock is
 * released. Nothing shows that afterwards. But who puts something around the method reads it in its descriptor, which
 * all decorators above get.
 */
export class TransactionWatch {
  #seen: string | undefined;

  /** The package whose transaction is around the lock. */
  get seen(): string | undefined {
    return this.#seen;
  }

  /** Notes who reads the method from here on. */
  follow(descriptor: PropertyDescriptor): void {
    let method: unknown = descriptor.value;
    Object.defineProperty(descriptor, 'value', {
      configurable: true,
      enumerable: true,
      get: () => {
        this.#seen ??= TRANSACTIONAL.exec(stack())?.[1]?.replace('\\', '/');
        return method;
      },
      set: (wrapper: unknown) => (method = wrapper),
    });
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
