import test from 'ava';
test('takes away', t => { t.is(2 - 1, 1); });
