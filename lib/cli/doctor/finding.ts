import { shownText } from '../show/table.js';

/** What `doctor` has found out about one thing. */
export interface Finding {
  /** `note`: works, but somebody should know; `problem`: locks fail, or can't be trusted. */
  readonly level: 'ok' | 'note' | 'problem';
  /** What it is about: a server, or `locks` for what all servers do together. */
  readonly about: string;
  readonly check: string;
  readonly text: string;
}

/** Shows findings, grouped by what they are about. */
export function shownFindings(findings: readonly Finding[]): string {
  const groups = [...new Set(findings.map(({ about }) => about))];
  return groups
    .map((group) => {
      const lines = findings.filter(({ about }) => about === group).map(shownFinding);
      return `${shownText(group)}\n${lines.join('')}`;
    })
    .join('\n');
}

const LEVELS = { ok: 'ok', note: 'note', problem: 'PROBLEM' } as const;

const shownFinding = ({ level, check, text }: Finding): string =>
  `  ${LEVELS[level].padEnd(7)}  ${check.padEnd(10)}  ${shownText(text)}\n`;
