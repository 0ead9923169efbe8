import { quoted } from '../../errors/messages.js';

/**
 * Lays rows out in columns under their heads. Texts of others are shown so that nothing in them moves the cursor of a
 * terminal.
 */
export function table(
  heads: readonly string[],
  rows: readonly (readonly (string | undefined)[])[],
  indent = '',
): string {
  const cells = [heads, ...rows.map((row) => row.map((cell) => shownText(cell)))];
  const widths = heads.map((_, at) => Math.max(...cells.map((row) => row[at]!.length)));
  return cells
    .map(
      (row) =>
        indent +
        row
          .map((cell, at) => cell.padEnd(widths[at]!))
          .join('  ')
          .trimEnd() +
        '\n',
    )
    .join('');
}

/** Shows a text of somebody else on a line; a dash, when there is none. */
export function shownText(text: string | undefined): string {
  return text === undefined || text === '' ? '-' : quoted(text).slice(1, -1).replaceAll('\\"', '"');
}
