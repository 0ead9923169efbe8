import type { Route } from '../feed/route.js';

interface FilterFieldProps {
  readonly route: Route;
  readonly onFilter: (filter: string) => void;
}

/** The longest filter that the app takes. */
const MAX_LENGTH = 200;

/** Asks for the text that rows must contain; it is part of the address. */
export function FilterField({ route, onFilter }: FilterFieldProps) {
  return (
    <form class="search" role="search" onSubmit={(event) => event.preventDefault()}>
      <label>
        Filter
        <input
          type="search"
          value={route.filter}
          onInput={(event) => onFilter(event.currentTarget.value)}
          placeholder="key, label, host:pid or trace id"
          maxLength={MAX_LENGTH}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
        />
      </label>
    </form>
  );
}
