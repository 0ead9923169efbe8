import {
  ConflictException,
  Injectable,
  NotFoundException,
  ServiceUnavailableException,
  type OnModuleDestroy,
} from '@nestjs/common';
import { Subject, type Observable } from 'rxjs';
import { LIVE_STAGE, type DemoCommand, type DemoNews } from './demo-messages.js';

/** What a page that is opened in the middle of a demonstration must hear, too. */
const REMEMBERED: readonly DemoNews['news'][] = ['starts', 'began', 'outcome', 'seen'];

/** Talks to the launcher that has started this process, if one has. */
@Injectable()
export class DemoLink implements OnModuleDestroy {
  private readonly subject = new Subject<DemoNews>();
  /** What the page needs to know when it is opened. */
  private ready: Extract<DemoNews, { news: 'ready' }> | undefined;
  private running: string | undefined;
  /** What has happened in the demonstration that runs, but for how far it has come. */
  private soFar: DemoNews[] = [];
  private readonly listen = (message: unknown): void => this.hear(message as Partial<DemoNews> | null);

  constructor() {
    process.on('message', this.listen);
  }

  get news(): Observable<DemoNews> {
    return this.subject;
  }

  /** Returns what a page that is opened now shows at first; nothing when no launcher has started this process. */
  get first(): readonly DemoNews[] {
    return this.ready ? [this.ready, ...this.soFar] : [];
  }

  /**
   * Asks for a demonstration.
   *
   * @throws ServiceUnavailableException without a launcher
   * @throws NotFoundException when there is no such scenario
   * @throws ConflictException while another one runs, or when there is no live stage to act on
   */
  send(command: DemoCommand): void {
    if (!this.ready || !process.connected) {
      throw new ServiceUnavailableException('Demonstrations need the launcher. Start the shop with "npm start".');
    }
    if (command.command === 'run' && !this.ready.scenarios.some(({ name }) => name === command.scenario))
      throw new NotFoundException(`There is no scenario "${command.scenario}".`);
    const name = command.command === 'run' ? command.scenario : LIVE_STAGE;
    const begins = command.command === 'run' || command.action === 'start';
    if (begins && this.running) throw new ConflictException(`The demonstration "${this.running}" still runs.`);
    if (!begins && this.running !== LIVE_STAGE)
      throw new ConflictException('The live stage is not running. Start it first.');
    if (begins) {
      this.running = name;
      this.hear({ news: 'starts', scenario: name });
    }
    process.send!(command);
  }

  /** Ends the streams of the page, too: the app waits for its responses. */
  onModuleDestroy(): void {
    process.off('message', this.listen);
    this.subject.complete();
  }

  private hear(message: Partial<DemoNews> | null): void {
    if (!message?.news) return;
    const news = message as DemoNews;
    if (news.news === 'ready') this.ready = news;
    if (news.news === 'ended' || news.news === 'failed') {
      this.running = undefined;
      this.soFar = [];
    }
    if (REMEMBERED.includes(news.news)) this.soFar.push(news);
    this.subject.next(news);
  }
}
