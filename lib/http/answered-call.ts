/** A call of `@grpc/grpc-js`, with what sends its answer: nothing public tells that. */
interface AnsweringCall {
  readonly cancelled: boolean;
  getDeadline?(): Date | number;
  readonly call?: { sendStatus?: (status: { readonly code?: number }) => void };
}

/** The status with which the server ends a call that takes longer than its client allows. A handler may use it, too. */
const DEADLINE_EXCEEDED = 4;

/** How early a timer may run, in ms. */
const EARLY_MS = 5;

const answered = new WeakSet<object>();

/**
 * Notes when a call of gRPC gets its answer, be it an error: `cancelled` is true from then on, although its client did
 * not leave.
 */
export function noteAnswer(call: AnsweringCall): void {
  const sender = call.call;
  const send = sender?.sendStatus?.bind(sender);
  if (!sender || !send) return;
  sender.sendStatus = (status) => {
    const isTooLate = status.code === DEADLINE_EXCEEDED && Date.now() + EARLY_MS >= Number(call.getDeadline?.());
    if (!isTooLate && !call.cancelled) answered.add(call);
    send(status);
  };
}

/** Whether the client of a call of gRPC has left before it had its answer. */
export const hasClientLeft = (call: AnsweringCall): boolean => call.cancelled && !answered.has(call);
