/** Says in the terms of the shop why something can't be done. `DomainErrorFilter` maps each kind to HTTP. */
export abstract class DomainError extends Error {
  override readonly name = this.constructor.name;
}

/** There is no such thing. */
export abstract class NotFoundError extends DomainError {}

/** The request is understood, but the state of things does not allow it. */
export abstract class NotPossibleError extends DomainError {}

/** Another system did not do its part. */
export abstract class UpstreamError extends DomainError {}

/** A newer holder of the lock has changed the data, so this caller has lost the lock. */
export class StaleFenceError extends DomainError {
  constructor(what: string) {
    super(
      `Somebody else changed ${what} meanwhile, and part of the work may be done. Check its result before trying again.`,
    );
  }
}
