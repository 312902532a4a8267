const assert = require('assert');
describe('add', function () {
  it('sums up', () => assert.equal(1 + 1, 2));
  it('sums wrongly', () => { console.log('noise'); assert.equal(1 + 1, 3); });
  it('later');
  it.skip('skipped', () => {});
  describe('with a hook', () => {
    before(() => { throw new Error('no luck'); });
    it('is never run', () => {});
  });
});
