import { readFileSync } from 'node:fs';

/** doc./reliability.template.md: the text beside this file, with the figures of a run. */
export function page(figures, { passed, when, machine }) {
  const rows = figures.map(({ name, promise, line }) => `| ${[name, promise, line].map(cell).join(' | ')} |`);
  const table = ['| scenario | what must hold | measured |', '| --- | --- | --- |', ...rows].join('\n');
  const outcome = passed ? 'Everything held.' : '**Not everything held in this run: see its log.**';
  return readFileSync(new URL('./reliability.template.md', import.meta.url), 'utf8').replace('<measured>', `Measured on ${when}, ${machine}. ${outcome}`).replace('<table>', table);
}

const cell = (text) => text.replaceAll('|', '\\|');
