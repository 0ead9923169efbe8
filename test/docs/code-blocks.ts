import { readFileSync } from 'node:fs';

export interface CodeBlock {
  readonly name: string;
  readonly code: string;
}

/** Returns the code blocks of a document in this language, each with its file and line. */
export function codeBlocks(file: string, language = 'ts'): CodeBlock[] {
  const text = readFileSync(file, 'utf8');
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map((match) => ({
    name: `${file}:${text.slice(0, match.index).split('\n').length}`,
    code: match[1]!,
  }));
}
