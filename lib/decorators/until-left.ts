import { Subject, takeUntil, type Observable, type Subscriber } from 'rxjs';

/**
 * What a source gives until its reader leaves. That is known before the source is asked: one that gives all at once may be left
 * while it does.
 *
 * @param inside runs what ends the source
 */
export function untilLeft(source: Observable<unknown>, reader: Subscriber<unknown>, inside = (end: () => void): void => end()): Observable<unknown> {
  const left = new Subject<void>();
  reader.add(() => inside(() => left.next()));
  return source.pipe(takeUntil(left));
}
