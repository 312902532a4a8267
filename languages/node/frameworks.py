"""How each test runner of Node is started so that it leaves a report, and how a canary is written for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from languages.base import Canary, Framework

_START = """\
command=(env "PATH=$workdir/{{ folder }}/node_modules/.bin:$workdir/node_modules/.bin:/opt/venv/bin:$PATH"@@
   {% for word in argv %} {{ word | sh }}{% endfor %})
"""
_GIVEN = """\
if [ ${#arguments[@]} -gt 0 ]; then
    for file in "${arguments[@]}"; do command+=("@@"); done
else
    command+=({% for path in paths %} {{ path | sh }}{% endfor %})
fi
"""
_ASSET = """\
"${reports[@]}" asset @ASSET@ > "$out/@FILE@" || fail "the reporter is damaged"
"""
_RELATIVE = "${file#{{ folder ~ '/' if folder else '' }}}"
"""A test file as seen from the folder in which the command runs."""


def _put(template: str, text: str) -> str:
    """A template with `text` in its open place."""
    return template.replace("@@", text)


def _asset(file: str, name: str) -> str:
    """A reporter of the harness, laid into $out."""
    return _ASSET.replace("@FILE@", file).replace("@ASSET@", name)


_JEST = (
    _put(_START, "")
    + """\
command+=(--ci --json "--outputFile=$out/jest.json" --forceExit)
"""
    # A pattern, not --runTestsByPath: where there are several projects only those run it that take it in.
    + _put(_GIVEN, """$(printf '%s' "$workdir/$file" | sed 's/[][().*+?^${}|\\\\]/\\\\&/g')\\$""")
)
_VITEST = (
    _put(_START, "")
    + 'command+=(--run --reporter=default --reporter=json "--outputFile.json=$out/vitest.json")\n'
    + _put(_GIVEN, _RELATIVE)
)
_MOCHA = (
    _asset("reporter.cjs", "mocha_reporter.cjs")
    + _put(_START, ' "MERGEMILL_OUT=$out/tests.jsonl"')
    + 'command+=(--reporter "$out/reporter.cjs")\n'
    + _put(_GIVEN, _RELATIVE)
)
_AVA = (
    _put(_START, "")
    + """\
command+=(--tap --timeout=10m)  # ava ends a run in which nothing happened for ten seconds, also while it starts
tap="$out/out.tap"
# With one file alone ava names none: then the report is called as the file.
mapfile -t tests < <(git ls-files -co --exclude-standard -- '*.[jt]s' '*.[cm][jt]s' '*.[jt]sx' |
    grep -vxFf <(cut -d' ' -f2- "$report/canaries" 2>/dev/null) |
    grep -E '(^|/)(tests?|__tests__)/|(^|[/._-])test[^/]*$' | grep -vE '(^|/)(_|fixtures?/|helpers?/)|[.](d|test-d)[.]')
[ ${#arguments[@]} -eq 0 ] || tests=("${arguments[@]}")
if [ ${#tests[@]} -eq 1 ]; then
    tap="$out/${tests[0]}.tap"
    mkdir -p "${tap%/*}" && chown -R {{ uid }} "$out"
fi
"""
    + _put(_GIVEN, _RELATIVE)
    + """command=(bash -c 'set -o pipefail; "$@" | tee "$0"' "$tap" "${command[@]}")\n"""
)
_SPREAD = """\
command=(bash -O globstar -O nullglob -O extglob -c '
    IFS=; count=$1; shift; start=("${@:1:count}"); shift "$count"; files=()
    for pattern; do
        if [ -d "$pattern" ]; then files+=("$pattern"/**/*.?([cm])[jt]s); else files+=($pattern); fi
    done
@@' "$out" "${#start[@]}" "${start[@]}" "${command[@]}")
"""
"""Patterns are spread out where the command runs, as a shell does it with those of a script."""
_NODE_TEST = (
    _asset("reporter.mjs", "node_reporter.mjs")
    + _put(_START, "")
    + """\
start=(
    "${command[@]}" --test "--test-reporter=$out/reporter.mjs" "--test-reporter-destination=$out/tests.jsonl"
    --test-reporter=spec --test-reporter-destination=stdout
)
command=()
"""
    + _put(_GIVEN, _RELATIVE)
    + _put(_SPREAD, '    exec "${start[@]}" "${files[@]}"')
)
_BORP = (
    _asset("reporter.mjs", "node_reporter.mjs")
    + _put(_START, "")
    + """\
if [ ${#arguments[@]} -gt 0 ]; then  # borp would run those of its configuration, too
    command=(
        env "PATH=/opt/venv/bin:$PATH" node --test "--test-reporter=$out/reporter.mjs"
        "--test-reporter-destination=$out/tests.jsonl" --test-reporter=spec --test-reporter-destination=stdout
    )
    for file in "${arguments[@]}"; do command+=("@@"); done
else
    command+=(--reporter=spec "--reporter=$out/reporter.mjs:$out/tests.jsonl")
    command+=({% for path in paths %} {{ path | sh }}{% endfor %})
fi
""".replace("@@", _RELATIVE)
)
_TAP = (
    _put(_START, "")
    + 'start=("${command[@]}")\ncommand=()\n'
    + _put(_GIVEN, _RELATIVE)
    + _put(
        _SPREAD,
        """\
    code=0; set -o pipefail
    for file in "${files[@]}"; do
        file=${file#./}; report=$0/{{ folder ~ '/' if folder else '' }}$file.tap
        mkdir -p "${report%/*}"
        "${start[@]}" "$file" | tee "$report" || code=$?
    done
    exit "$code"
""",
    )
)

# ------------------------------------------------------------------------------------------------ canaries

_SUFFIX = re.compile(r"(?:[._-](?:test|spec|tests|specs|unit|node))?\.[cm]?[jt]sx?$")
_PREFIX = re.compile(r"^tests?[-_.]")


def canary_name(files: Sequence[str]) -> str:
    """A name as the first test file has it: `word.spec.ts` beside `shop.spec.ts`."""
    name = next((PurePosixPath(file).name for file in files if _SUFFIX.search(file)), "shop.test.js")
    suffix = _SUFFIX.search(name)
    prefix = _PREFIX.search(name)
    end = suffix.group() if suffix else ".js"
    start = prefix.group() if prefix and len(prefix.group()) + len(end) < len(name) else ""
    return f'"{start}${{word}}{end}"'


def _canary(body: str) -> Canary:
    return Canary(name=canary_name, body=body)


_FAILS = "if (3 * 4 !== %s) throw new Error('it is not');"
_AVA_CANARY = """\
if grep -qs '"type": *"module"' package.json || [[ $file == *.ts || $file == *.mjs ]]; then
        printf "import test from 'ava';\\n"
    else
        printf "const test = require('ava');\\n"
    fi
    printf "test('%s', t => { t.is(3 * 4, %s); });\\n" "$word" "$sum\""""


def _body(before: str, define: str) -> str:
    """Bash that prints `before` and a test: `define` has %s for its name and %s for what it does."""
    inner = define.replace("DOES", _FAILS)
    return f"""printf "{before}{inner}\\n" "$word" "$sum" """.rstrip()


FRAMEWORKS = (
    Framework(name="jest", shell=_JEST, report="jest", canary=_canary(_body("", "test('%s', () => { DOES });"))),
    Framework(
        name="vitest", shell=_VITEST, report="jest",
        canary=_canary(_body("import { test } from 'vitest';\\n", "test('%s', () => { DOES });")),
    ),
    Framework(
        name="mocha", shell=_MOCHA, report="lines",
        canary=_canary(_body("", "(typeof it === 'function' ? it : test)('%s', function () { DOES });")),
    ),
    Framework(
        name="ava", shell=_AVA, report="ava", canary=_canary(_AVA_CANARY),
    ),
    Framework(
        name="node:test", shell=_NODE_TEST, report="nodetest",
        canary=_canary(_body("", "import('node:test').then(({ test }) => test('%s', () => { DOES }));")),
    ),
    Framework(
        name="borp", shell=_BORP, report="nodetest",
        canary=_canary(_body("", "import('node:test').then(({ test }) => test('%s', () => { DOES }));")),
    ),
    Framework(
        name="tap", shell=_TAP, report="tap",
        canary=_canary(
            _body("", "console.log((3 * 4 === %s ? '' : 'not ') + 'ok 1 - %s'); console.log('1..1');").replace(
                '"$word" "$sum"', '"$sum" "$word"'
            )
        ),
    ),
)  # fmt: skip
