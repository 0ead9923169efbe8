import { chromiumInstalled } from './browser/chromium.mjs';
import redisServerInstalled from './redis/redis-server-installed.mjs';

/** Jest's global set-up of the slow tier: it needs a browser, too. */
export default function slowTierInstalled() {
  redisServerInstalled();
  chromiumInstalled();
}
