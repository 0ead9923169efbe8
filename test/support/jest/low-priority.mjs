import { getPriority, setPriority } from 'node:os';
import { ppid } from 'node:process';

/** Lower than that of Jest itself, and so than that of the specs that are about time: they go first. */
setPriority(Math.min(getPriority(ppid) + 5, 19));
