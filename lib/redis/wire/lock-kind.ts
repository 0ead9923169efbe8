import type { Cancellation, Sharing } from '../../store/lock-store.js';

/** Writes what distinguishes the waiters of a key, for the scripts: how to share it, and `/label` if there is one. */
export function kindOf({ sharing, label }: Pick<Cancellation, 'sharing' | 'label'>): string {
  return label === undefined ? sharing : `${sharing}/${encodeURIComponent(label)}`;
}

/** Reads what `kindOf` wrote. */
export function readKind(kind: string): { readonly sharing: Sharing; readonly label: string | undefined } {
  const [sharing, label] = kind.split('/', 2);
  return { sharing: sharing as Sharing, label: label === undefined ? undefined : decoded(label) };
}

/** Decodes a label; returns it as it is if it can't, because any client may write to Redis. */
function decoded(label: string): string {
  try {
    return decodeURIComponent(label);
  } catch {
    return label;
  }
}
