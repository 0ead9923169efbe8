interface Listening {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

const listenings = new WeakMap<AbortSignal, Listening>();

/**
 * Calls back when a signal aborts. However many wait for one signal, it gets one listener: the more listeners an
 * `AbortSignal` has, the longer it takes to add another. The last callback to be removed removes the listener.
 *
 * @returns removes the callback
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const listening = listenings.get(signal) ?? listenTo(signal);
  listening.callbacks.add(callback);
  return () => {
    if (!listening.callbacks.delete(callback) || listening.callbacks.size > 0) return;
    signal.removeEventListener('abort', listening.listener);
    listenings.delete(signal);
  };
}

function listenTo(signal: AbortSignal): Listening {
  const callbacks = new Set<() => void>();
  const listener = () => {
    // One callback may remove another.
    for (const callback of [...callbacks]) if (callbacks.has(callback)) callback();
  };
  const listening = { callbacks, listener };
  listenings.set(signal, listening);
  signal.addEventListener('abort', listener);
  return listening;
}
