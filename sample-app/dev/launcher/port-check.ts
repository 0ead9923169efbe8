import { once } from 'node:events';
import { createServer } from 'node:net';

/** Throws an error that says what to do when somebody else listens on the port. */
export async function assertPortIsFree(port: number): Promise<void> {
  const server = createServer();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const problem = code === 'EADDRINUSE' ? 'is taken' : `cannot be used (${code})`;
    throw new Error(`Port ${port} ${problem}. Pick another: PORT=${port === 65_535 ? 3000 : port + 1} npm start`, {
      cause: error,
    });
  }
  server.close();
  await once(server, 'close');
}
