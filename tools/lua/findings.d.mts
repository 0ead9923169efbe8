export declare function findingsIn(source: string, constants: readonly string[]): { line: number; text: string }[];
