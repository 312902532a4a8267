@test "sums up" { true; }
