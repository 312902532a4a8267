use strict; use warnings; use Test::More;
is(1 + 1, 2, 'sums up');
is(1 + 1, 3, 'sums wrongly');
ok(1);
note 'a note';
subtest 'inner' => sub { plan tests => 2; ok(1, 'one'); ok(1, 'escaped \# hash'); };
SKIP: { skip 'not here', 1; ok(0, 'never'); }
TODO: { local $TODO = 'later'; ok(0, 'to do'); }
done_testing;
