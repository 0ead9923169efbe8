import { useLayoutEffect, useRef } from 'preact/hooks';

/** Takes the focus over when what has it inside of this element goes away, so that the next Tab does not begin anew. */
export function useFocusKept<Element extends HTMLElement>() {
  const element = useRef<Element>(null);
  const hadFocus = element.current?.contains(document.activeElement) ?? false;
  useLayoutEffect(() => {
    if (hadFocus && document.activeElement === document.body) element.current?.focus({ preventScroll: true });
  });
  return element;
}
