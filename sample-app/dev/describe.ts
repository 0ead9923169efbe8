/** Returns a URL fit to be printed. */
export function withoutPassword(url: string): string {
  return url.replace(/(\/\/[^:@/]*):.*@/, '$1:***@');
}
