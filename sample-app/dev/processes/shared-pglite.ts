import { PGlite } from '@electric-sql/pglite';

type Execute = PGlite['execProtocolRawStream'];

// Parse, Bind, Describe, Execute, Close, Flush: the parts of a query with parameters, before the Sync that ends it.
const PARTS_OF_A_QUERY = new Set(Buffer.from('PBDECH'));

/**
 * A PGlite that several clients can use at once.
 *
 * The socket server passes on one protocol message at a time, from any client, except inside a transaction.
 * But all clients share one session, so another's Parse between my Parse and my Bind would make me run its query.
 * Calling a half-sent query a transaction keeps its messages together.
 */
export class SharedPglite extends PGlite {
  #isInQuery = false;

  override execProtocolRawStream(...[message, options]: Parameters<Execute>): ReturnType<Execute> {
    this.#isInQuery = PARTS_OF_A_QUERY.has(message[0] ?? 0);
    return super.execProtocolRawStream(message, options);
  }

  override isInTransaction(): boolean {
    return this.#isInQuery || super.isInTransaction();
  }
}
