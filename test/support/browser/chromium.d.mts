export function chromiumPath(): string;
export function chromiumInstalled(): void;
