import { Logger } from '@nestjs/common';
import { safeLog } from './safe-log.js';

/** Writes the lines of this library to the log of the app. Never throws. */
export const logger = safeLog(new Logger('RedisLock'));
