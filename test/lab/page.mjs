import { readFileSync } from 'node:fs';

/** Returns docs/reliability.md: the template beside this file, with the figures of a run. */
export function page(figures, { failed, when, machine }) {
  const rows = figures.map(({ name, promise, line }) => `| ${[name, promise, line].map(cell).join(' | ')} |`);
  const table = ['| scenario | what must hold | measured |', '| --- | --- | --- |', ...rows].join('\n');
  const outcome =
    failed.length === 0
      ? 'Everything held.'
      : `**Not everything held in this run.** What failed:\n\n${failed.map((name) => `- ${name}`).join('\n')}`;
  return readFileSync(new URL('./reliability.template.md', import.meta.url), 'utf8')
    .replace('<measured>', () => `Measured on ${when}, ${machine}. ${outcome}`)
    .replace('<table>', () => table);
}

const cell = (text) => text.replaceAll('|', '\\|');
