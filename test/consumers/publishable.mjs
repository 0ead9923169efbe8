// Before "npm publish": refuses while package.json does not say where the repository is. A package page makes its links
// from that.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

const { repository } = JSON.parse(readFileSync('package.json', 'utf8'));
assert.ok(
  !repository.url.includes('/OWNER/'),
  'Put the owner of the repository in place of OWNER in package.json: in "repository", "homepage" and "bugs"',
);
