/** A placeholder, as it is written. */
export interface Placeholder {
  /** `dto.id` of `<dto.id>` */
  readonly inside: string;
  /** The characters to escape in its values. */
  readonly unsafe: RegExp;
}

/** A parsed template: fixed texts, which may be empty, with a placeholder between each two of them. */
export interface TemplateText {
  readonly fixed: readonly string[];
  readonly placeholders: readonly Placeholder[];
}

/** Separates the parts of a key. */
export const KEY_SEPARATOR = ':';
const PLACEHOLDER = /<([^<>]*)>/;
/** Separates two values in the same part of a key. */
const SEPARATOR = /[^\p{L}\p{N}]/gu;

/** Parses a template. Any text is one: without placeholders it is a fixed text. */
export function parseTemplate(template: string): TemplateText {
  // `split` by a pattern with a group returns what the group matched at the odd indexes.
  const texts = template.split(PLACEHOLDER);
  const fixed = texts.filter((_, at) => at % 2 === 0);
  const separators = separatorsOf(fixed);
  return {
    fixed,
    placeholders: separators.map((chars, at) => ({ inside: texts[2 * at + 1]!, unsafe: unsafeCharacters(chars) })),
  };
}

/** Returns the characters of a fixed text that separate the values before and after it; empty when there are none. */
export function separatorsIn(fixed: string): readonly string[] {
  return fixed.match(SEPARATOR) ?? [];
}

/**
 * Returns, for each placeholder, the separators that its values must not contain: those between the placeholders of its
 * part of the key. ":" separates the parts, so the separators of one part don't matter to the others.
 */
function separatorsOf(fixed: readonly string[]): readonly ReadonlySet<string>[] {
  let ofPart = new Set<string>();
  return fixed.slice(1).map((_, at) => {
    if (at > 0 && fixed[at]!.includes(KEY_SEPARATOR)) ofPart = new Set();
    else if (at > 0) for (const char of separatorsIn(fixed[at]!)) ofPart.add(char);
    return ofPart;
  });
}

/**
 * The characters that are always escaped: `:` and `%`, because one separates parts and the other escapes; braces, which
 * would move a key to another slot of a cluster; and what can't be seen or has no bytes of its own: white space except
 * the plain space, control characters, and half a surrogate pair.
 */
const ALWAYS = '(?! )\\s|[:%{}\\p{Cc}\\p{Cs}';
const ALWAYS_UNSAFE = new RegExp(`${ALWAYS}]`, 'gu');

function unsafeCharacters(separators: ReadonlySet<string>): RegExp {
  if (separators.size === 0) return ALWAYS_UNSAFE;
  const escaped = [...separators].map((char) => `\\u{${char.codePointAt(0)!.toString(16)}}`).join('');
  return new RegExp(`${ALWAYS}${escaped}]`, 'gu');
}
