@test "sums up" { [ $((1 + 1)) -eq 2 ]; }
@test "sums wrongly" { [ $((1 + 1)) -eq 3 ]; }
@test "later" { skip "not here"; }
