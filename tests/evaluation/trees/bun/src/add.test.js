import { describe, expect, it, test } from 'bun:test';
describe('add', () => {
  test('sums up', () => { expect(1 + 1).toBe(2); });
  test('sums up', () => { expect(1 + 1).toBe(2); });
  test.each([[1, 2], [2, 2]])('%i is %i', (a, b) => { expect(a).toBe(b); });
  test.skip('skipped (12 ms)', () => {});
  test.todo('later');
  describe('deep', () => { it('throws at /tmp/x-81723/y on localhost:51234', () => { throw new Error('no'); }); });
});
test('outside', () => { console.log('noise'); });
