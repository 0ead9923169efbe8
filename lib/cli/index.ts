#!/usr/bin/env node
import { EXIT } from './exit-codes.js';
import { main } from './main.js';
import { printFailure } from './print.js';
import { allSaid, say } from './say.js';

const exitCode = await main(process.argv.slice(2), say);
const failure = printFailure();
if (failure) say(`The output could not be written: ${failure.message}`);
await allSaid();
// Nothing that is still open may keep the process.
process.exit(failure ? EXIT.unwritten : exitCode);
