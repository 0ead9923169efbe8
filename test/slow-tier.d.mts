export const SLOW_TIER: readonly string[];
