1..1
ok 1 - plain
Bail out! tired
