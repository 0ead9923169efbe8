export declare const TIMELESS: readonly string[];
export declare const PATIENT: readonly string[];
