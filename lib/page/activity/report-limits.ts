/** Most items of each list of a report. The page shows no more of all processes together. */
export const MOST_HOT_KEYS = 20;
export const MOST_LOSSES = 50;
export const MOST_HISTORY = 100;
