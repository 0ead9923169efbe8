/** Returns what to print when the API is ready: examples to paste into a shell. */
export function welcome(url: string, opsPassword: string): string {
  return `
Ready: ${url}  shows what goes wrong without a lock (OpenAPI: ${url}/docs). Ctrl-C stops everything.
The locks, live: ${url}/locks  (user ops, password ${opsPassword})
To paste:

  post() { curl -s "${url}$1" -H 'content-type: application/json' -d "$2"; echo; }
  id=$(post /accounts '{"owner":"Ada","balance":1000}' | grep -Eo '[0-9]+' | head -1)
  post /accounts/$id/withdraw '{"amount":200}' & post /accounts/$id/withdraw '{"amount":300}' & wait
  curl -s ${url}/accounts/$id     # 1000 - 200 - 300 = 500
`;
}
