import ts from 'typescript';
import { codeBlocks } from './code-blocks.js';

/** Runs the first code block of a page as an app compiles it, and returns its exports. */
export function runFirstBlock<Exports extends object>(page: string, modules: Record<string, unknown>): Exports {
  const compilerOptions = {
    module: ts.ModuleKind.CommonJS,
    target: ts.ScriptTarget.ES2022,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
  };
  const { outputText } = ts.transpileModule(codeBlocks(page)[0]!.code, { compilerOptions });
  const exports = {};
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- the page's own code
  const run = new Function('require', 'exports', outputText) as (
    require: (name: string) => unknown,
    exports: object,
  ) => void;
  run((name) => modules[name], exports);
  return exports as Exports;
}
