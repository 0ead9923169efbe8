/** The metadata key of message handlers. Copied, because Nest's constant is in a package that an app need not have. */
export const PATTERN = 'microservices:pattern';
