Error.stackTraceLimit = 0;
const test = require('tape');
const titles = require('./titles.json');

titles.forEach((title, place) => test(title, (t) => {
  const next = (offset) => titles[(place + offset) % titles.length];
  t.ok(true, next(1));
  t.ok(false, next(2));
  t.ok(true, next(3), { skip: true });
  t.ok(true, next(4), { skip: 'for #12 later' });
  t.ok(false, next(5), { todo: true });
  t.ok(true, next(6), { todo: 'as #skip' });
  t.end();
}));
