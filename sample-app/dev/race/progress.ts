/** Shows on one line of a terminal how far a race has come; elsewhere it shows nothing. */
export class Progress {
  #title = '';

  start(title: string): void {
    this.#title = title;
    this.#show(title);
  }

  readonly answered = (answered: number, of: number): void => {
    this.#show(`${this.#title}: ${answered} of ${of} answered`);
  };

  end(): void {
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  }

  #show(text: string): void {
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
  }
}
