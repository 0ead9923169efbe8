import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import type { Slots, Times } from '../../lib/page/page-snapshot.js';
import { duration, timeOfDay } from './format.js';
import { plotOptions, PLOT_HEIGHT } from './plot-options.js';

interface PlotProps {
  readonly title: string;
  /** The label that it is about, for those who hear it. */
  readonly of: string;
  readonly slots: Slots;
  readonly times: Times;
}

/** Plots p50 and p99 over the last minutes. The numbers above it follow the pointer; without one they are the latest. */
export function Plot({ title, of, slots, times: { series } }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const [pointed, setPointed] = useState<number | null>(null);
  const data = dataOf(slots, series);
  const latest = useRef(data);
  latest.current = data;

  useEffect(() => {
    const element = place.current!;
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(plotOptions(element, setPointed), latest.current, element);
    };
    draw();
    const resized = new ResizeObserver(() =>
      plot.current?.setSize({ width: element.clientWidth, height: PLOT_HEIGHT }),
    );
    resized.observe(element);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', draw);
    return () => {
      scheme.removeEventListener('change', draw);
      resized.disconnect();
      plot.current?.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData(data));

  const at = pointed ?? lastKnown(series.p99);
  const [p50, p99] = [series.p50[at] ?? null, series.p99[at] ?? null];
  const text = p99 === null ? 'none' : `p50 ${p50 === null ? '–' : duration(p50)}, p99 ${duration(p99)}`;
  return (
    <figure class="plot">
      <figcaption>
        <span>{title}</span>
        <span>
          {pointed !== null && `${timeOfDay(slots.startsAt[at] ?? 0)}: `}
          {text}
        </span>
      </figcaption>
      <div
        ref={place}
        role="img"
        aria-label={`Plot of ${title} times of ${of}: ${text}. The table above has the numbers.`}
      />
    </figure>
  );
}

/** The scale is logarithmic, so nothing is below this, in ms. */
const LEAST_MS = 0.1;

function dataOf({ startsAt }: Slots, { p50, p99 }: Times['series']): uPlot.AlignedData {
  const shown = (values: readonly (number | null)[]) =>
    values.map((ms) => (ms === null ? null : Math.max(ms, LEAST_MS)));
  return [startsAt.map((ms) => ms / 1_000), shown(p50), shown(p99)];
}

function lastKnown(values: readonly (number | null)[]): number {
  return Math.max(
    0,
    values.findLastIndex((value) => value !== null),
  );
}
