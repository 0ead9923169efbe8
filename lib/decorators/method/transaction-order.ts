import { plainStack } from '../../errors/stack-files.js';

/** MikroORM has other decorators in these packages, too. */
const MIKRO_ORM = /@mikro-orm[\\/](?:core|decorators)(?=[\\/]\w+[\\/]Transactional\.)/.source;
/** The packages whose `@Transactional` puts a transaction around everything below it. */
const TRANSACTIONAL = new RegExp(
  `[\\\\/](@nestjs-cls[\\\\/]transactional|typeorm-transactional(?:-cls-hooked)?|${MIKRO_ORM})[\\\\/]`,
);

/** How many frames to look at: three are of this file, and a decorator reads the method itself, or in a helper. */
const FRAMES = 5;

/** The same where a decorator looks at the method by way of others, such as those that copy its metadata. */
const METADATA_FRAMES = 30;

/**
 * Notices that `@Transactional` stands above a locked method, so the transaction would commit after the lock is
 * released. Nothing shows that afterwards. But who puts something around the method reads it in its descriptor, which
 * all decorators above get. And who gets it by another way, while the class is defined, looks at the method itself: it
 * copies the metadata, which reads the prototype, or asks the constructor whether the method is async.
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
  look(frames = METADATA_FRAMES): void {
    if (!this.#isDefined) this.#seen ??= TRANSACTIONAL.exec(plainStack(frames))?.[1]?.replace('\\', '/');
  }

  /** Notes who reads the method in its descriptor from here on. */
  follow(descriptor: PropertyDescriptor): void {
    let method: unknown = descriptor.value;
    Object.defineProperty(descriptor, 'value', {
      configurable: true,
      enumerable: true,
      get: () => {
        this.look(FRAMES);
        return method;
      },
      set: (wrapper: unknown) => (method = wrapper),
    });
  }
}
