export declare const TIMELESS: readonly string[];
