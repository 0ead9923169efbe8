import { Observable, Subject, takeUntil, type Subscriber } from 'rxjs';

/**
 * What a source gives until its reader leaves. That is known before the source is asked: one that gives all at once may
 * be left while it does.
 *
 * @param inside runs what ends the source
 */
export function untilUnsubscribed(
  source: Observable<unknown>,
  reader: Subscriber<unknown>,
  inside = (end: () => void): void => end(),
): Observable<unknown> {
  const left = new Subject<void>();
  reader.add(() => inside(() => left.next()));
  // One of another copy of rxjs need not know our operators.
  const ours =
    source instanceof Observable
      ? source
      : new Observable<unknown>((subscriber) => (source as Observable<unknown>).subscribe(subscriber));
  return ours.pipe(takeUntil(left));
}
