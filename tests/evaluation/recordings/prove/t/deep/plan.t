1..3
ok 1 - first
