/** How many slots a Redis Cluster has. */
export const SLOTS = 16384;

/**
 * CRC-16/XMODEM of each byte, as in appendix A of the Redis Cluster specification: polynomial 1021, initial value 0.
 */
const CRC16 = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

/**
 * Returns the slot of a key of Redis. Only the hash tag counts, if the key has one.
 *
 * @see https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#key-distribution-model
 */
export function slotOf(name: string): number {
  let crc = 0;
  for (const byte of Buffer.from(tagOf(name))) crc = ((crc << 8) & 0xffff) ^ CRC16[(crc >> 8) ^ byte]!;
  return crc % SLOTS;
}

/** The hash tag: what stands within the first braces, unless that is empty; the whole name otherwise. */
function tagOf(name: string): string {
  const open = name.indexOf('{');
  const close = open < 0 ? -1 : name.indexOf('}', open + 1);
  return close > open + 1 ? name.slice(open + 1, close) : name;
}
