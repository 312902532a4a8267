const test = require('tape');
test('add', (t) => {
  t.equal(1 + 1, 2, 'sums up');
  t.equal(1 + 1, 3);
  t.test('inner', (s) => { s.ok(true); s.end(); });
  t.skip('later');
  t.end();
});
test('plan', (t) => { t.plan(1); });
