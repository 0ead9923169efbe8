import { short } from './figures.mjs';

const WIDTH = 720;
const LABELS = 230;
const BAR = 18;
const GAP = 8;
const TOP = 64;
const RIGHT = 60;

const STYLE = `
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-size: 16px; font-weight: 600 }
  .about { fill: #57606a }
  .other { fill: #afb8c1 }
  .ours { fill: #0969da }
  .ideal { stroke: #57606a; stroke-dasharray: 4 3 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .about { fill: #8d96a0 } .other { fill: #484f58 } .ours { fill: #4493f8 } .ideal { stroke: #8d96a0 }
  }`;

/**
 * Draws horizontal bars as SVG, ours in a colour of its own. A line marks the floor.
 *
 * @param plot a title, what the numbers are, the number of the floor, and bars with a name, a value and perhaps `isOurs`
 */
export function svg({ title, about, ideal, bars }) {
  const height = TOP + bars.length * (BAR + GAP) + GAP;
  const scale = (WIDTH - LABELS - RIGHT) / Math.max(ideal, ...bars.map(({ value }) => value));
  const at = (value) => (LABELS + value * scale).toFixed(1);
  const rows = bars.map(({ name, value, isOurs }, index) => {
    const top = TOP + index * (BAR + GAP);
    return [
      `<text x="${LABELS - 8}" y="${top + 13}" text-anchor="end">${escaped(name.replaceAll('`', ''))}</text>`,
      `<rect class="${isOurs ? 'ours' : 'other'}" x="${LABELS}" y="${top}" width="${(value * scale).toFixed(1)}" height="${BAR}" rx="2"/>`,
      `<text x="${Number(at(value)) + 6}" y="${top + 13}">${short(value)}</text>`,
    ].join('\n');
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escaped(title)}">`,
    `<style>${STYLE}\n</style>`,
    `<text class="title" x="8" y="24">${escaped(title)}</text>`,
    `<text class="about" x="8" y="46">${escaped(about)}</text>`,
    ...rows,
    `<line class="ideal" x1="${at(ideal)}" x2="${at(ideal)}" y1="${TOP - 6}" y2="${height - GAP}"/>`,
    '</svg>\n',
  ].join('\n');
}

/** The bars of some contenders. */
export function barsOf(contenders, ours, valueOf) {
  return contenders.map((one) => ({ name: one.name, value: valueOf(one), isOurs: ours.includes(one) }));
}

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
