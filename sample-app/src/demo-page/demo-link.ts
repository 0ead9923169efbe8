import { ConflictException, Injectable, ServiceUnavailableException, type OnApplicationShutdown } from '@nestjs/common';
import { Subject, type Observable } from 'rxjs';
import type { DemoCommand, DemoNews } from './demo-messages.js';

/** Talks to the launcher that has started this process, if one has. */
@Injectable()
export class DemoLink implements OnApplicationShutdown {
  private readonly subject = new Subject<DemoNews>();
  /** What the page needs to know when it is opened. */
  private ready: DemoNews | undefined;
  private running: string | undefined;
  private readonly listen = (message: unknown): void => this.hear(message as Partial<DemoNews> | null);

  constructor() {
    process.on('message', this.listen);
  }

  get news(): Observable<DemoNews> {
    return this.subject;
  }

  /** Returns what the page shows at first; undefined when no launcher has started this process. */
  get first(): DemoNews | undefined {
    return this.ready;
  }

  /**
   * Asks for a demonstration.
   *
   * @throws ServiceUnavailableException without a launcher
   * @throws ConflictException while another one runs
   */
  send(command: DemoCommand): void {
    if (!this.ready || !process.connected) {
      throw new ServiceUnavailableException('Demonstrations need the launcher. Start the shop with "npm start".');
    }
    if (this.running) throw new ConflictException(`The demonstration "${this.running}" still runs.`);
    this.running = command.scenario;
    process.send!(command);
  }

  onApplicationShutdown(): void {
    process.off('message', this.listen);
    this.subject.complete();
  }

  private hear(message: Partial<DemoNews> | null): void {
    if (!message?.news) return;
    const news = message as DemoNews;
    if (news.news === 'ready') this.ready = news;
    if (news.news === 'ended' || news.news === 'failed') this.running = undefined;
    this.subject.next(news);
  }
}
