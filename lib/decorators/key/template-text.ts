/** A placeholder, as it is written. */
export interface Placeholder {
  /** `dto.id` of `<dto.id>` */
  readonly inside: string;
  /** What is escaped in its values. */
  readonly unsafe: RegExp;
}

/** A template, taken apart: fixed texts, which may be empty, with a placeholder between each two. */
export interface TemplateText {
  readonly fixed: readonly string[];
  readonly placeholders: readonly Placeholder[];
}

/** What stands between the parts of a key. */
export const KEY_SEPARATOR = ':';
const PLACEHOLDER = /<([^<>]*)>/;
/** What keeps two values apart that stand in one part of a key. */
const SEPARATOR = /[^\p{L}\p{N}]/gu;

/** Takes a template apart. Any text can be: one without placeholders is a fixed text. */
export function parseTemplate(template: string): TemplateText {
  // Splitting by a pattern with a group puts what the group caught at the odd places.
  const texts = template.split(PLACEHOLDER);
  const fixed = texts.filter((_, at) => at % 2 === 0);
  const separators = separatorsOf(fixed);
  return {
    fixed,
    placeholders: separators.map((chars, at) => ({ inside: texts[2 * at + 1]!, unsafe: unsafeCharacters(chars) })),
  };
}

/** What keeps the values before and behind a fixed text apart; empty, when nothing does. */
export function separatorsIn(fixed: string): readonly string[] {
  return fixed.match(SEPARATOR) ?? [];
}

/**
 * The separators that no value of a placeholder may have: those between the placeholders of its part of the key. The
 * parts are kept apart by ":", so what one of them has does not matter to the others.
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
 * Always `:` and `%`, as keys are parted by one and escaped with the other; braces, which would move a key to another
 * slot of a cluster; and what can't be seen or has no bytes of its own: white space but for the plain space, control
 * characters, half a surrogate pair.
 */
const ALWAYS = '(?! )\\s|[:%{}\\p{Cc}\\p{Cs}';
const ALWAYS_UNSAFE = new RegExp(`${ALWAYS}]`, 'gu');

function unsafeCharacters(separators: ReadonlySet<string>): RegExp {
  if (separators.size === 0) return ALWAYS_UNSAFE;
  const escaped = [...separators].map((char) => `\\u{${char.codePointAt(0)!.toString(16)}}`).join('');
  return new RegExp(`${ALWAYS}${escaped}]`, 'gu');
}
