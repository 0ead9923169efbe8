/** A call of `@grpc/grpc-js`, with what sends its answer: nothing public tells that. */
interface AnsweringCall {
  readonly cancelled: boolean;
  readonly call?: { sendStatus?: (status: { readonly code?: number }) => void };
}

/** The codes with which a call ends that its client has cancelled, or that has taken longer than its client allows. */
const OF_CLIENTS: readonly (number | undefined)[] = [1, 4];

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
    if (!OF_CLIENTS.includes(status.code) && !call.cancelled) answered.add(call);
    send(status);
  };
}

/** Whether the client of a call of gRPC has left before it had its answer. */
export const hasClientLeft = (call: AnsweringCall): boolean => call.cancelled && !answered.has(call);
