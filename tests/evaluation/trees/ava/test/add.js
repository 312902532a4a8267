import test from 'ava';
test('sums up', t => { t.is(1 + 1, 2); });
test('sums wrongly', t => { t.is(1 + 1, 3); });
test.skip('later', t => { t.pass(); });
test.failing('known', t => { t.fail(); });
