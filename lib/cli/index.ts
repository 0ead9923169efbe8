#!/usr/bin/env node
import { main } from './main.js';
import { say } from './say.js';

// Nothing that is still open may keep the process.
process.exit(await main(process.argv.slice(2), say));
