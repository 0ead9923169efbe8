/** The machine's monotonic clock, the same in every process. */
export const nowUs = () => Number(process.hrtime.bigint()) / 1000;
