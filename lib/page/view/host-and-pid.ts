/** Reads host and pid of the source of a process: `host:pid:instance`. */
export function hostAndPid(source: string): { readonly host: string; readonly pid: number } {
  const [, host, pid] = /^([\w.-]+):(\d+):/.exec(source) ?? [];
  return { host: host ?? source, pid: Number(pid ?? 0) };
}
