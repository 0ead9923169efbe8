import { Observable, ReplaySubject, takeUntil, type Subscription } from 'rxjs';

/**
 * Ends a source when its reader unsubscribes. It listens for that before it subscribes to the source, because a source
 * that emits everything at once may lose its reader while it does.
 *
 * @param inside runs the function that ends the source
 */
export function untilUnsubscribed(
  source: Observable<unknown>,
  reader: Pick<Subscription, 'add'>,
  inside = (end: () => void): void => end(),
): Observable<unknown> {
  const left = new ReplaySubject<void>(1);
  reader.add(() => inside(() => left.next()));
  // An Observable of another copy of rxjs may not work with the operators of this one.
  const ours =
    source instanceof Observable
      ? source
      : new Observable<unknown>((subscriber) => (source as Observable<unknown>).subscribe(subscriber));
  return ours.pipe(takeUntil(left));
}
