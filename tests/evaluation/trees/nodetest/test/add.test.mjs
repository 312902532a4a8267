import assert from 'node:assert';
import { describe, it, test } from 'node:test';
test('outside', () => {});
test('with subtests', async (t) => {
  await t.test('inner', () => {});
  await t.test('inner fails', () => { assert.strictEqual(1 + 1, 3); });
});
describe('add', () => {
  it('sums up', () => {});
  it('sums up', () => {});
  it('is skipped', { skip: 'why' }, () => {});
  it('is to do', { todo: true }, () => { throw new Error('x'); });
  describe('deep', () => { it('throws', () => { throw new TypeError('no'); }); });
});
