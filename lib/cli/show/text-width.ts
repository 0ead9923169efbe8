const ASCII = /^[\x20-\x7e]*$/;
/** What most terminals draw over two columns. */
const WIDE =
  /^(?:\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{1f300}-\u{1f64f}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}])/u;
/** What takes no room of its own. */
const HIDDEN = /^[\p{Mn}\p{Me}\p{Cf}]+$/u;

const LETTERS = new Intl.Segmenter();

/** Counts the columns of a terminal that a text takes. */
export function textWidth(text: string): number {
  if (ASCII.test(text)) return text.length;
  return lettersOf(text).reduce((width, letter) => width + letterWidth(letter), 0);
}

/** Fills a text with spaces up to a number of columns. */
export const padded = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - textWidth(text)));

/** Leaves out the middle of a text that takes too many columns: its ends tell more of a key. */
export function shortened(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  const letters = lettersOf(text);
  const start = fitting(letters, Math.ceil((width - 1) / 2));
  const end = fitting(letters.toReversed(), width - 1 - textWidth(start.join('')));
  return `${start.join('')}…${end.toReversed().join('')}`;
}

/** As many letters from the start as fit. */
function fitting(letters: readonly string[], width: number): readonly string[] {
  let left = width;
  const end = letters.findIndex((letter) => (left -= letterWidth(letter)) < 0);
  return end < 0 ? letters : letters.slice(0, end);
}

const letterWidth = (letter: string): number => (HIDDEN.test(letter) ? 0 : WIDE.test(letter) ? 2 : 1);

/** Splits a text into what its readers take for one letter. */
const lettersOf = (text: string): string[] => Array.from(LETTERS.segment(text), ({ segment }) => segment);
