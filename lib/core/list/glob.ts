/** Whether a character, by its code point, may stand at a place of a text; `*`: any number of any characters. */
type Token = '*' | ((code: number) => boolean);

/**
 * Makes a function that tells which texts match a pattern of Redis: `*`, `?`, `[abc]`, `[a-z]`, `[^a]`, and `\` before
 * a character that stands for itself. It takes no longer than the length of the text times that of the pattern: anybody
 * can send a pattern.
 */
export function globMatcher(pattern: string): (text: string) => boolean {
  const tokens = tokensOf([...pattern]);
  if (tokens.length > 0 && tokens.every((token) => token === '*')) return () => true;
  return (text) => matches(tokens, text);
}

/** Tries the shortest text for each `*`, and takes more into the last one when the rest does not match. */
function matches(tokens: readonly Token[], text: string): boolean {
  let at = 0;
  let next = 0;
  let star = -1;
  let starEnd = 0;
  while (at < text.length) {
    const token = tokens[next];
    const code = text.codePointAt(at)!;
    if (token === '*') {
      star = next++;
      starEnd = at;
    } else if (token?.(code)) {
      next++;
      at += widthOf(code);
    } else if (star >= 0) {
      next = star + 1;
      at = starEnd += widthOf(text.codePointAt(starEnd)!);
    } else return false;
  }
  return tokens.slice(next).every((token) => token === '*');
}

const widthOf = (code: number): number => (code > 0xffff ? 2 : 1);

function tokensOf(pattern: readonly string[]): Token[] {
  const tokens: Token[] = [];
  for (let at = 0; at < pattern.length; at++) {
    const char = pattern[at]!;
    if (char === '*') tokens.push('*');
    else if (char === '?') tokens.push(() => true);
    else if (char === '[') {
      const set = setAt(pattern, at + 1);
      tokens.push(set.token);
      at = set.end;
    } else {
      if (char === '\\' && at + 1 < pattern.length) at++;
      const literal = pattern[at]!.codePointAt(0)!;
      tokens.push((code) => code === literal);
    }
  }
  return tokens;
}

/** Reads a set of characters as Redis does: one without an end goes to the end of the pattern. */
function setAt(pattern: readonly string[], from: number): { readonly token: Token; readonly end: number } {
  const isInverted = pattern[from] === '^';
  const ranges: (readonly [number, number])[] = [];
  const add = (one: string, other = one): void => {
    const ends = [one.codePointAt(0)!, other.codePointAt(0)!] as const;
    ranges.push([Math.min(...ends), Math.max(...ends)]);
  };
  let at = isInverted ? from + 1 : from;
  for (; at < pattern.length && pattern[at] !== ']'; at++) {
    if (pattern[at] === '\\' && at + 1 < pattern.length) add(pattern[++at]!);
    else if (pattern[at + 1] === '-' && at + 2 < pattern.length) {
      add(pattern[at]!, pattern[at + 2]);
      at += 2;
    } else add(pattern[at]!);
  }
  return {
    token: (code) => ranges.some(([first, last]) => code >= first && code <= last) !== isInverted,
    end: at,
  };
}
