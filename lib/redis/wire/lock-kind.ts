import type { Cancellation, Sharing } from '../../store/lock-store.js';

/** What distinguishes waiters of one key, as the scripts write it: how it is to be shared, and `/label` if there is one. */
export function kindOf({ sharing, label }: Pick<Cancellation, 'sharing' | 'label'>): string {
  return label === undefined ? sharing : `${sharing}/${encodeURIComponent(label)}`;
}

/** Reads what `kindOf` made. */
export function readKind(kind: string): { readonly sharing: Sharing; readonly label: string | undefined } {
  const [sharing, label] = kind.split('/', 2);
  return { sharing: sharing as Sharing, label: label === undefined ? undefined : decoded(label) };
}

/** Whoever may write to Redis can write anything. */
function decoded(label: string): string {
  try {
    return decodeURIComponent(label);
  } catch {
    return label;
  }
}
