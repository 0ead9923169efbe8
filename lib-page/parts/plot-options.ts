import type uPlot from 'uplot';
import { duration, timeOfDay } from './format.js';

/** In CSS pixels. */
export const PLOT_HEIGHT = 130;

/** Says how a plot looks, with the colours of the page at its place; tells which slot is pointed at. */
export function plotOptions(element: HTMLElement, onPoint: (slot: number | null) => void): uPlot.Options {
  const style = getComputedStyle(element);
  const color = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const axis: uPlot.Axis = {
    stroke: color('muted'),
    grid: { stroke: color('line'), width: 1 },
    ticks: { show: false },
    font: `12px ${style.fontFamily}`,
  };
  const line: uPlot.Series = { width: 1.75, points: { size: 4 } };
  return {
    width: element.clientWidth,
    height: PLOT_HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: { y: { distr: 3, range: (_plot, min, max) => decades(min, max) } },
    axes: [
      {
        ...axis,
        size: 26,
        space: 70,
        values: (_plot, seconds) => seconds.map((at) => timeOfDay(at * 1_000, 'without seconds')),
      },
      {
        ...axis,
        size: 58,
        splits: (_plot, _axis, min, max) => powersOfTen(min, max),
        filter: (_plot, splits) => splits,
        values: (_plot, all) => all.map(shortDuration),
      },
    ],
    series: [{}, { ...line, stroke: color('first') }, { ...line, stroke: color('second'), dash: [5, 3] }],
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] },
  };
}

/** Whole powers of ten around all values. */
function decades(min: number | null, max: number | null): [number, number] {
  const low = Math.floor(Math.log10(min ?? 1));
  return [10 ** low, 10 ** Math.max(low + 1, Math.ceil(Math.log10(max ?? 10)))];
}

function powersOfTen(min: number, max: number): number[] {
  const low = Math.round(Math.log10(min));
  return Array.from({ length: Math.round(Math.log10(max)) - low + 1 }, (_, index) => 10 ** (low + index));
}

/** `10 ms` instead of `10.0 ms`. */
function shortDuration(ms: number): string {
  return duration(ms).replace(/\.0+ /, ' ');
}
