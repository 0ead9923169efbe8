interface Audience {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

const audiences = new WeakMap<AbortSignal, Audience>();

/**
 * Calls back when a signal aborts. However many wait on one signal, it has one listener: adding a listener takes an
 * `AbortSignal` the longer the more it has. The last one to leave takes the listener away.
 *
 * @returns what ends it
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const audience = audiences.get(signal) ?? gather(signal);
  audience.callbacks.add(callback);
  return () => {
    if (!audience.callbacks.delete(callback) || audience.callbacks.size > 0) return;
    signal.removeEventListener('abort', audience.listener);
    audiences.delete(signal);
  };
}

function gather(signal: AbortSignal): Audience {
  const callbacks = new Set<() => void>();
  const listener = () => {
    for (const callback of [...callbacks]) callback();
  };
  const audience = { callbacks, listener };
  audiences.set(signal, audience);
  signal.addEventListener('abort', listener);
  return audience;
}
