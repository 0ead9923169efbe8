import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { sorted, type Order, type SortValue } from './sort.js';

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** What a click on the title sorts by. @default the column can't be sorted */
  readonly by?: (row: Row) => SortValue;
  readonly isNumber?: boolean;
  /** Whether a phone gives it a line of its own. */
  readonly isWide?: boolean;
  /** Whether there is nothing to say, so that a phone leaves it out. */
  readonly isEmpty?: (row: Row) => boolean;
}

interface TableProps<Row> {
  readonly title: ComponentChildren;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** Tells a row from others, from snapshot to snapshot. */
  readonly id: (row: Row) => string;
  /** What to say without rows. */
  readonly nothing: ComponentChildren;
  /** Which rows there are, if not all are shown. */
  readonly note?: ComponentChildren;
}

/**
 * A table whose rows come and go. A row that stays keeps its element, and with it focus and selection; when the row with
 * the focus goes, the next one gets it. The roles are named because a phone shows rows as cards, by CSS.
 */
export function Table<Row>({ title, columns, rows, id, nothing, note }: TableProps<Row>) {
  const [order, setOrder] = useState<Order | undefined>();
  const body = useFocusKept();
  const noteId = useId();
  const shown = order ? sorted(rows, columns[order.column]!.by!, order.isDescending) : rows;
  const seen = new Map<string, number>();
  return (
    <section class="card">
      <div class="heading">
        <h2 tabIndex={-1}>{title}</h2>
        {note && (
          <p class="muted" id={noteId}>
            {note}
          </p>
        )}
      </div>
      {rows.length === 0 ? (
        <p class="muted">{nothing}</p>
      ) : (
        <table role="table" aria-describedby={note ? noteId : undefined}>
          <caption class="hidden">{title}</caption>
          <thead role="rowgroup">
            <tr role="row">
              {columns.map((column, index) => (
                <th
                  key={column.title}
                  role="columnheader"
                  scope="col"
                  class={column.isNumber ? 'end' : ''}
                  aria-sort={order?.column !== index ? undefined : order.isDescending ? 'descending' : 'ascending'}
                >
                  {column.by ? (
                    <button type="button" onClick={() => setOrder(next(order, index, column.isNumber === true))}>
                      {column.title}
                    </button>
                  ) : (
                    column.title
                  )}
                </th>
              ))}
            </tr>
          </thead>
          <tbody role="rowgroup" ref={body}>
            {shown.map((row) => (
              <tr role="row" key={unique(id(row), seen)}>
                {columns.map(({ title, cell, isNumber, isWide, isEmpty }, index) =>
                  index === 0 ? (
                    <th role="rowheader" scope="row">
                      {cell(row)}
                    </th>
                  ) : (
                    <td
                      role="cell"
                      data-title={title}
                      class={classes({ end: isNumber, wide: isWide, nothing: isEmpty?.(row) })}
                    >
                      {cell(row)}
                    </td>
                  ),
                )}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function classes(all: Readonly<Record<string, boolean | undefined>>): string {
  return Object.keys(all)
    .filter((name) => all[name])
    .join(' ');
}

/** Numbers begin with the largest, texts with A; a third click goes back to the order of the app. */
function next(order: Order | undefined, column: number, isNumber: boolean): Order | undefined {
  if (order?.column !== column) return { column, isDescending: isNumber };
  return order.isDescending === isNumber ? { column, isDescending: !isNumber } : undefined;
}

function unique(id: string, seen: Map<string, number>): string {
  const times = seen.get(id) ?? 0;
  seen.set(id, times + 1);
  return times === 0 ? id : `${id} ${times}`;
}

/** Gives the focus of a row that goes to the row that takes its place. */
function useFocusKept() {
  const body = useRef<HTMLTableSectionElement>(null);
  const rowOf = (element: Element | null) => [...(body.current?.rows ?? [])].findIndex((row) => row.contains(element));
  const before = rowOf(document.activeElement);
  useLayoutEffect(() => {
    if (before < 0 || document.activeElement !== document.body) return;
    const rows = body.current?.rows;
    const row = rows?.[Math.min(before, rows.length - 1)];
    const heir = row?.querySelector<HTMLElement>('a, button');
    heir?.focus({ preventScroll: true });
  });
  return body;
}
