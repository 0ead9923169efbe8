#!/usr/bin/env node
import { main } from './main.js';
import { allSaid, say } from './say.js';

const exitCode = await main(process.argv.slice(2), say);
await allSaid();
// Nothing that is still open may keep the process.
process.exit(exitCode);
