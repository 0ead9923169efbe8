import type { Section } from '../processes/contenders.js';
import { finding, type Finding } from './finding.js';

/** What can be told from one holder alone. */
export function holder(section: Section): Finding[] {
  const wrong = (property: Finding['property'], what: string) =>
    finding(property, what, section.keys.join(', '), [section]);
  const { token, fence, beganAt, goodUntil, silentAt, refused } = section;
  const found: Finding[] = [];
  if (silentAt !== undefined) found.push(wrong('S3', 'the lease was over, a task ran, and the signal had not aborted'));
  if (token === undefined || fence === undefined) found.push(wrong('S7', 'the body ran without a lock'));
  else if (goodUntil <= beganAt) found.push(wrong('S7', 'the body ran on a lock that was not valid'));
  if (refused !== undefined) found.push(wrong('S7', 'the body ran though its call got no lock'));
  return found;
}

/** S4: whose lease is not over has not lost the lock, unless the server forgot it. */
export function touched(section: Section): Finding[] {
  const { lost, abortedAt, unlocked, unlockedAt, goodUntil } = section;
  const wrong = (what: string) => [finding('S4', what, section.keys.join(', '), [section])];
  if (lost === 'taken' && abortedAt! < goodUntil) return wrong('somebody else took it, or freed it, within its lease');
  if (section.isHeld && unlocked === false && unlockedAt! < goodUntil)
    return wrong('it was gone when its holder gave it back within its lease');
  return [];
}
