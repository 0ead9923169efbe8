import { quoted } from '../../errors/messages.js';
import { padded, shortened, textWidth } from './text-width.js';

/** How a table looks. */
export interface TableLook {
  /** Precedes each line. @default nothing */
  readonly indent?: string;
  /** How many columns of a terminal its lines may take. @default any number */
  readonly width?: number;
  /** The columns of the table whose texts are shortened if there is too little room, by their place. @default none */
  readonly shrinking?: readonly number[];
  /** Colours a cell: of the heads, or of a row. @default no colours */
  readonly paint?: (cell: string, at: { readonly row: number | 'heads'; readonly column: number }) => string;
}

const GAP = '  ';
/** Texts are not shortened below this. */
const LEAST_WIDTH = 8;
/** A longer text moves what follows it on its line, not all lines. */
const LARGEST_WIDTH = 60;

/**
 * Lays rows out in columns under their heads. Texts of others are shown so that nothing in them moves the cursor of a
 * terminal.
 */
export function table(
  heads: readonly string[],
  rows: readonly (readonly (string | undefined)[])[],
  look: TableLook = {},
): string {
  return tableLines(heads, rows, look)
    .map((line) => `${line}\n`)
    .join('');
}

/** Lays rows out in the same way, as lines. */
export function tableLines(
  heads: readonly string[],
  rows: readonly (readonly (string | undefined)[])[],
  { indent = '', width = Infinity, shrinking = [], paint = (cell) => cell }: TableLook,
): string[] {
  const cells = [heads, ...rows.map((row) => row.map((cell) => shownText(cell)))];
  const natural = heads.map((_, column) => cells.reduce((most, row) => Math.max(most, textWidth(row[column]!)), 0));
  const widths = fitted(natural, width - indent.length, shrinking);
  return cells.map((row, at) => {
    const last = row.length - 1;
    const shown = row.map((cell, column) => {
      const fitting = shrinking.includes(column) && width < Infinity ? shortened(cell, widths[column]!) : cell;
      const painted = paint(fitting, { row: at === 0 ? 'heads' : at - 1, column });
      return column === last ? painted : painted + padded('', widths[column]! - textWidth(fitting));
    });
    return indent + shown.join(GAP);
  });
}

/** Takes room from the widest of the shrinking columns, until all fit. */
function fitted(natural: readonly number[], width: number, shrinking: readonly number[]): number[] {
  const widths = [...natural];
  if (width === Infinity) return widths.map((one) => Math.min(one, LARGEST_WIDTH));
  let over = widths.reduce((sum, one) => sum + one + GAP.length, -GAP.length) - width;
  for (; over > 0; over--) {
    const widest = shrinking.reduce((one, other) => (widths[other]! > widths[one]! ? other : one), shrinking[0] ?? 0);
    if (!shrinking.includes(widest) || widths[widest]! <= LEAST_WIDTH) break;
    widths[widest]!--;
  }
  return widths;
}

/** Shows a text of somebody else on a line; a dash, when there is none. */
export function shownText(text: string | undefined): string {
  return text === undefined || text === '' ? '-' : quoted(text).slice(1, -1).replaceAll('\\"', '"');
}
