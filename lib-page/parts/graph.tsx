import type { WaitGraph } from '../../lib/page/page-snapshot.js';
import { nameOf, processOf } from './caller.js';
import { many } from './format.js';
import { layoutOf, type GraphEdge, type GraphNode } from './graph-layout.js';

/** In CSS pixels. */
const BOX = { width: 184, height: 46, gapX: 110, gapY: 34, margin: 12, below: 36 };
const LONGEST_TEXT = 23;

/** Draws who waits for whom, from left to right; circles are red and their lines thick. */
export function Graph({ graph }: { readonly graph: WaitGraph }) {
  const { nodes, edges, columns, rows } = layoutOf(graph);
  if (nodes.length === 0) return <p class="muted">No call waits for one that waits itself.</p>;
  const width = columns * (BOX.width + BOX.gapX) - BOX.gapX + 2 * BOX.margin;
  const height = rows * (BOX.height + BOX.gapY) - BOX.gapY + 2 * BOX.margin + BOX.below;
  const label = `${many(nodes.length, 'call')}, ${many(graph.cycles.length, 'deadlock')}. The table below says the same.`;
  return (
    // It scrolls, so it can have the focus.
    <div class="graph" tabIndex={0} role="group" aria-label="Graph of who waits for whom">
      <svg role="img" aria-label={label} width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
        {edges.map((edge, index) => (
          <Edge key={`${edge.from.id} ${edge.to.id} ${edge.key} ${index}`} edge={edge} />
        ))}
        {nodes.map((node) => (
          <Box key={node.id} node={node} />
        ))}
      </svg>
    </div>
  );
}

function Box({ node }: { readonly node: GraphNode }) {
  const { left, top } = placeOf(node);
  const name = node.call ? nameOf(node.call) : 'a call';
  return (
    <g class={node.isInCycle ? 'in-cycle' : ''}>
      <title>{name}</title>
      <rect x={left} y={top} width={BOX.width} height={BOX.height} rx="6" />
      <text x={left + 10} y={top + 19}>
        {shortened(name)}
      </text>
      <text class="edge-label" x={left + 10} y={top + 36}>
        {node.call ? shortened(processOf(node.call)) : ''}
      </text>
    </g>
  );
}

function Edge({ edge: { from, to, key, isInCycle } }: { readonly edge: GraphEdge }) {
  const [start, end] = [placeOf(from), placeOf(to)];
  const isForward = to.x > from.x;
  const y1 = start.top + BOX.height / 2;
  const y2 = end.top + BOX.height / 2;
  const right = start.left + BOX.width;
  const low = Math.max(start.top, end.top) + BOX.height + BOX.below - 6;
  const path = isForward
    ? `M${right} ${y1} C${right + 60} ${y1} ${end.left - 60} ${y2} ${end.left - 8} ${y2}`
    : `M${start.left + BOX.width / 2} ${start.top + BOX.height} C${start.left + BOX.width / 2} ${low} ${end.left + BOX.width / 2} ${low} ${end.left + BOX.width / 2} ${end.top + BOX.height + 8}`;
  const [labelX, labelY] = isForward
    ? [(right + end.left) / 2, (y1 + y2) / 2 - 6]
    : [(start.left + end.left + BOX.width) / 2, low - 4];
  const [tipX, tipY] = isForward ? [end.left, y2] : [end.left + BOX.width / 2, end.top + BOX.height];
  const tip = isForward ? `M${tipX} ${tipY} l-9 -5 v10 z` : `M${tipX} ${tipY} l-5 9 h10 z`;
  const marked = isInCycle ? ' in-cycle' : '';
  return (
    <g>
      <title>{`waits for ${key}`}</title>
      <path class={`edge${marked}`} d={path} />
      <path class={`arrow${marked}`} d={tip} />
      <text class={`edge-label${marked}`} x={labelX} y={labelY} text-anchor="middle">
        {shortened(key)}
      </text>
    </g>
  );
}

function placeOf({ x, y }: GraphNode): { left: number; top: number } {
  return { left: BOX.margin + x * (BOX.width + BOX.gapX), top: BOX.margin + y * (BOX.height + BOX.gapY) };
}

function shortened(text: string): string {
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT - 1)}…` : text;
}
