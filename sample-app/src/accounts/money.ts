/** The largest amount. Money is an integer of minor units, as large as a JavaScript number counts exactly. */
export const MAX_MONEY = Number.MAX_SAFE_INTEGER;
