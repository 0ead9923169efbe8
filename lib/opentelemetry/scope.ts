/** The name of the instrumentation scope, of metrics and of spans. */
export const SCOPE = 'nest-redis-lock';
