ok 1 - sums up
not ok 2 - sums wrongly
ok 3
# a note
# Subtest: inner
    1..2
    ok 1 - one
    ok 2 - escaped \\\# hash
ok 4 - inner
ok 5 # skip not here
not ok 6 - to do # TODO later
#   Failed (TODO) test 'to do'
#   at t/add.t line 8.
1..6
