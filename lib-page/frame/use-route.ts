import { useEffect, useState } from 'preact/hooks';
import { hashOf, parseRoute, type Route } from '../feed/route.js';

type Go = (to: Pick<Route, 'view'> & Partial<Route>) => void;

/** Follows the address; `go` changes it in place, so that typing a filter fills no history. */
export function useRoute(): [Route, Go] {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const follow = () => setRoute(parseRoute(location.hash));
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  const go: Go = (to) => {
    history.replaceState(null, '', hashOf(to));
    setRoute(parseRoute(location.hash));
  };
  return [route, go];
}
