import { CLUSTER_CASES } from './cluster-cases.js';
import { CONTENDED_CASES } from './contended-cases.js';
import { FENCE_CASES } from './fence-cases.js';
import { HAND_OFF_CASES } from './hand-off-cases.js';
import { LATE_COPY_CASES } from './late-copy-cases.js';
import { OPERATION_CASES } from './operation-cases.js';
import { QUEUE_CASES } from './queue-cases.js';
import { RENEWAL_CASES } from './renewal-cases.js';
import { SHARING_CASES } from './sharing-cases.js';
import type { ScriptCases } from './script-fixtures.js';

/**
 * What each line of the scripts is there for, as far as the random programs of test/store/programs.spec.ts don't notice
 * when it is wrong.
 */
export const SCRIPT_CASES: ScriptCases = {
  ...FENCE_CASES,
  ...OPERATION_CASES,
  ...SHARING_CASES,
  ...QUEUE_CASES,
  ...HAND_OFF_CASES,
  ...RENEWAL_CASES,
  ...CLUSTER_CASES,
  ...LATE_COPY_CASES,
  ...CONTENDED_CASES,
};
