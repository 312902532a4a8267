"""Converter from the report of a test framework to the JUnit file that mergemill reads. Runs in the container.

    python3 -I -S reports.pyz FORMAT OUT_DIR WORKDIR [--since SECONDS] > junit.xml
    python3 -I -S reports.pyz asset NAME > FILE          one of our reporters, for the framework to load

It needs Python >= 3.9 and the standard library only; `evaluation.reports.converter.pack_converter()` packs it. The exit
code is 3, without XML, when nothing in OUT_DIR can be read. The output is `<testsuites mergemill="1">` with rows
`<testcase file="path/from/root" name="rest of the id" time="seconds">`, where the id is `file::name`. The type of a
failure is `assertion` or `exception`. A file that could not be collected or compiled is a row with an empty name and
`<error message="collection failure: ..."/>`.

Every regular file below OUT_DIR is read, whatever its name, and skipped if it does not have the format; only JSON lines
must be in files named `*.jsonl`, and texts of minitest and ExUnit in `*.txt`. The framework only has to write its
report there:

FORMAT      how to make the report ($OUT is OUT_DIR, run in WORKDIR; $RP is `python3 -I -S reports.pyz`)
----------  ---------------------------------------------------------------------------------------------------------
gojson      go test -json -count=1 ./... > $OUT/go.json 2>&1        (of the module in folder F: $OUT/F/go.json)
cargo       cargo test --no-fail-fast --color never > $OUT/cargo.txt 2>&1        (doc tests included)
            with a runner that gives libtest `--logfile $OUT/BINARY.log`, and else creates $OUT/BINARY.unlogged,
            results are read from these logs and from the text of binaries without libtest
nextest     cargo nextest run --no-fail-fast --profile P, with `[profile.P.junit] path = "..."` in its configuration
jest        jest --ci --json --outputFile=$OUT/jest.json
            vitest run --reporter=json --outputFile=$OUT/vitest.json
mocha       mocha --reporter json --reporter-option output=$OUT/mocha.json       (mocha >= 9.2)
            mocha --reporter json > $OUT/mocha.txt                               (any; may be mixed with other output)
bun         bun test --reporter=junit --reporter-outfile=$OUT/bun.xml > $OUT/bun.txt 2>&1        (bun >= 1.2)
nodetest    $RP asset node_reporter.mjs > $OUT/reporter.mjs; node --test --test-reporter=$OUT/reporter.mjs
            --test-reporter-destination=$OUT/tests.jsonl FILES                   (node >= 18.19)
tap         prove: PERL_TEST_HARNESS_DUMP_TAP=$OUT prove -lr t                   (also with `make test`, `./Build test`)
            other producers: one run a file, `node FILE > $OUT/FILE.tap` (folders made before)
            several files in one: tap --reporter=tap > $OUT/out.tap; bats --tap -r test > ...
ava         ava --tap > $OUT/out.tap                   (one file alone, which ava does not name: $OUT/FILE.tap)
rspec       rspec --format json --out $OUT/rspec.json --format progress
minitest    $RP asset ruby_reporter.rb > $OUT/ruby_reporter.rb; MERGEMILL_OUT=$OUT/tests.jsonl
            RUBYOPT="-r$OUT/ruby_reporter.rb" rake test                          (minitest and test-unit, any starter)
            or without it: -v in TESTOPTS (the verbose text of minitest). Either way `... > $OUT/out.txt 2>&1`
            reports a file that could not be loaded
exunit      $RP asset exunit_formatter.exs > $OUT/formatter.exs; MERGEMILL_OUT=$OUT/tests.jsonl MIX_ENV=test
            elixir -r $OUT/formatter.exs -S mix test --formatter Mergemill.Formatter --seed 0
            or without it: mix test --trace --seed 0
            Either way `... > $OUT/out.txt 2>&1` reports a file that did not compile
ctest       ctest --show-only=json-v1 > $OUT/tests.json; ctest --output-junit $OUT/ctest.xml     (cmake >= 3.21)
            (with `--output-log $OUT/ctest.log`, for the signals that ended tests)
            older: ctest -T test --no-compress-output; cp Testing/*/Test.xml $OUT
            all in the build folder; `ctest > $OUT/ctest.txt` is read, too. With GTEST_OUTPUT=xml:$OUT/ set as well,
            GoogleTest's own reports replace ctest's rows of the same tests
googletest  GTEST_OUTPUT=xml:$OUT/ ctest            (or the executables; the slash makes it one file for each)
catch2      the executable -r xml -o $OUT/NAME.xml  (-r junit is read, too, but does not name files)
meson       meson test -C B > $OUT/build.txt 2>&1; cp B/meson-logs/testlog*.junit.xml $OUT
            cp B/meson-logs/testlog.txt $OUT                                         (for the signals that ended them)
            cp B/meson-info/intro-tests.json B/meson-info/intro-targets.json $OUT    (for the files of the tests)
cases       ctest --show-only=json-v1 > $OUT/tests.json; $RP asset case_runner.py > $OUT/case_runner.py
            python3 -I -S $OUT/case_runner.py $OUT/tests.json $OUT    (Catch2, doctest; prints what ctest leaves out)
luaunit     LUAUNIT_OUTPUT=junit LUAUNIT_JUNIT_FNAME=$OUT/reports/FILE.xml lua FILE > $OUT/reports/FILE.txt 2>&1
            for each file of tests
dart        dart test --file-reporter json:$OUT/tests.json       (of the package in folder F: $OUT/F/tests.json)
junit       anything that writes JUnit XML:
            phpunit --log-junit $OUT/phpunit.xml
            bats --report-formatter junit --output $OUT -r test
            jest-junit with addFileAttribute; mocha --reporter xunit; rspec_junit_formatter; vitest --reporter=junit;
            (node's own junit and tap reporters name no files up to node 22 at least: use `nodetest`)
jvm         as junit, and from WORKDIR what is younger than --since of **/target/{surefire,failsafe}-reports/TEST-*.xml,
            **/build/test-results/**/*.xml and sbt's **/target/test-reports/*.xml
            mvn -B -o -fae -Dmaven.test.failure.ignore=true test > $OUT/build.txt 2>&1
            gradle --offline --continue cleanTest test > $OUT/build.txt 2>&1     (compiler errors are read from there)
make        $RP asset recipe_shell.py > $OUT/recipe_shell.py; chmod 755 $OUT/recipe_shell.py
            make -B -k SHELL=$OUT/recipe_shell.py '.SHELLFLAGS=--root=WORKDIR --target=$@ -c' TARGET
swift       swift build --build-tests > $OUT/build.txt 2>&1
            swift test --skip-build --parallel --num-workers 1 --verbose --xunit-output $OUT/tests.xml > $OUT/tests.txt
            (Swift Testing writes $OUT/tests-swift-testing.xml; both are read)
trx         dotnet test --logger trx --results-directory $OUT > $OUT/build.txt 2>&1
lines       our own reporters: JSON lines {"file":, "name":, "status":, "message":, "seconds":} in $OUT/NAME.jsonl
            busted: $RP asset busted_handler.lua > $OUT/handler.lua; MERGEMILL_OUT=$OUT/tests.jsonl
            busted --output $OUT/handler.lua
            Julia: $RP asset julia_tests.jl > $OUT/tests.jl; MERGEMILL_OUT=$OUT/tests.jsonl julia $OUT/tests.jl

Ids of one report differ: what changes from run to run is removed from names (`stabilize_name`), and the second test of
a name gets ` #2`. What tests print is not read as a result where the framework keeps it apart; docs/languages.md lists
what is weaker.
"""
