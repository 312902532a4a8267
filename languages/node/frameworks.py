"""Test frameworks of Node: shell templates that make each runner write a report, and canary templates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from languages.base import Canary, Framework

_START = """\
command=(env "PATH=$workdir/{{ folder }}/node_modules/.bin:$workdir/node_modules/.bin:/opt/venv/bin:$PATH"@@
   {% for word in argv %} {{ word | sh }}{% endfor %})
"""
_ARGUMENTS = """\
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
"""Path of a test file relative to the folder in which the command runs."""


def _fill_template(template: str, text: str) -> str:
    """Return a template with its placeholder replaced by `text`."""
    return template.replace("@@", text)


def _render_asset(file: str, name: str) -> str:
    """Return the shell line that writes a reporter of the harness to $out."""
    return _ASSET.replace("@FILE@", file).replace("@ASSET@", name)


_JEST = (
    _fill_template(_START, "")
    + """\
command+=(--ci --json "--outputFile=$out/jest.json" --forceExit --coverage=false)  # settings may turn it on
"""
    # A pattern instead of --runTestsByPath: with several projects, only those that include the file run it.
    + _fill_template(_ARGUMENTS, """$(printf '%s' "$workdir/$file" | sed 's/[][().*+?^${}|\\\\]/\\\\&/g')\\$""")
)
_VITEST = (
    _fill_template(_START, "")
    + 'command+=(--run --reporter=default --reporter=json "--outputFile=$out/vitest.json" --coverage=false)\n'
    + _fill_template(_ARGUMENTS, _RELATIVE)
)
_MOCHA = (
    _render_asset("reporter.cjs", "mocha_reporter.cjs")
    + _fill_template(_START, ' "MERGEMILL_OUT=$out/tests.jsonl"')
    + 'command+=(--reporter "$out/reporter.cjs")\n'
    + _fill_template(_ARGUMENTS, _RELATIVE)
)
_AVA = (
    _fill_template(_START, "")
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
    + _fill_template(_ARGUMENTS, _RELATIVE)
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
"""Expands globs in the folder of the command, as a shell does for the globs of a script."""
_NODE_TEST = (
    _render_asset("reporter.mjs", "node_reporter.mjs")
    + _fill_template(_START, "")
    + """\
start=(
    "${command[@]}" --test "--test-reporter=$out/reporter.mjs" "--test-reporter-destination=$out/tests.jsonl"
    --test-reporter=spec --test-reporter-destination=stdout
)
command=()
"""
    + _fill_template(_ARGUMENTS, _RELATIVE)
    + _fill_template(_SPREAD, '    exec "${start[@]}" "${files[@]}"')
)
_BORP = (
    _render_asset("reporter.mjs", "node_reporter.mjs")
    + _fill_template(_START, "")
    + """\
if [ ${#arguments[@]} -gt 0 ]; then  # borp would run those of its configuration, too
    command=(
        env "PATH=/opt/venv/bin:$PATH" node --test "--test-reporter=$out/reporter.mjs"
        "--test-reporter-destination=$out/tests.jsonl" --test-reporter=spec --test-reporter-destination=stdout
    )
    for file in "${arguments[@]}"; do command+=("@@"); done
else
    start=("${command[@]}" --reporter=spec "--reporter=$out/reporter.mjs:$out/tests.jsonl")
    command=({% for path in paths %} {{ path | sh }}{% endfor %})
""".replace("@@", _RELATIVE)
    + _fill_template(_SPREAD, '    exec "${start[@]}" "${files[@]}"')
    + "fi\n"
)
_BUN = (
    _fill_template(_START, "")
    + 'command+=(--reporter=junit "--reporter-outfile=$out/bun.xml")\n'
    # Bun reads a name without a folder as a filter of all test files.
    + _fill_template(_ARGUMENTS, f"./{_RELATIVE}")
    + """command=(bash -c 'set -o pipefail; "$@" 2>&1 | tee "$0"' "$out/bun.txt" "${command[@]}")\n"""
)
_TAP = (
    _fill_template(_START, "")
    + 'start=("${command[@]}")\ncommand=()\n'
    + _fill_template(_ARGUMENTS, _RELATIVE)
    + _fill_template(
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


def name_canary(files: Sequence[str]) -> str:
    """Return a file name formed like the first test file: `word.spec.ts` beside `shop.spec.ts`."""
    name = next((PurePosixPath(file).name for file in files if _SUFFIX.search(file)), "shop.test.js")
    suffix = _SUFFIX.search(name)
    prefix = _PREFIX.search(name)
    ending = suffix.group() if suffix else ".js"
    beginning = prefix.group() if prefix and len(prefix.group()) + len(ending) < len(name) else ""
    return f'"{beginning}${{word}}{ending}"'


def _make_canary(body: str) -> Canary:
    return Canary(name=name_canary, body=body)


_ASSERTION = "if (3 * 4 !== %s) throw new Error('it is not');"
_AVA_CANARY = """\
if grep -qs '"type": *"module"' package.json || [[ $file == *.ts || $file == *.mjs ]]; then
        printf "import test from 'ava';\\n"
    else
        printf "const test = require('ava');\\n"
    fi
    printf "test('%s', t => { t.is(3 * 4, %s); });\\n" "$word" "$sum\""""


def _render_body(before: str, define: str) -> str:
    """Return Bash that prints `before` and a test. `define` has %s for the test's name and DOES for its body."""
    inner = define.replace("DOES", _ASSERTION)
    return f"""printf "{before}{inner}\\n" "$word" "$sum" """.rstrip()


FRAMEWORKS = (
    Framework(
        name="jest", shell=_JEST, report="jest", canary=_make_canary(_render_body("", "test('%s', () => { DOES });"))
    ),
    Framework(
        name="vitest",
        shell=_VITEST,
        report="jest",
        canary=_make_canary(_render_body("import { test } from 'vitest';\\n", "test('%s', () => { DOES });")),
    ),
    Framework(
        name="mocha",
        shell=_MOCHA,
        report="lines",
        canary=_make_canary(_render_body("", "(typeof it === 'function' ? it : test)('%s', function () { DOES });")),
    ),
    Framework(
        name="ava",
        shell=_AVA,
        report="ava",
        canary=_make_canary(_AVA_CANARY),
    ),
    Framework(
        name="node:test",
        shell=_NODE_TEST,
        report="nodetest",
        canary=_make_canary(_render_body("", "import('node:test').then(({ test }) => test('%s', () => { DOES }));")),
    ),
    Framework(
        name="borp",
        shell=_BORP,
        report="nodetest",
        canary=_make_canary(_render_body("", "import('node:test').then(({ test }) => test('%s', () => { DOES }));")),
    ),
    Framework(
        name="bun",
        shell=_BUN,
        report="bun",
        canary=_make_canary(_render_body("import { test } from 'bun:test';\\n", "test('%s', () => { DOES });")),
    ),
    Framework(
        name="tap",
        shell=_TAP,
        report="tap",
        canary=_make_canary(
            _render_body("", "console.log((3 * 4 === %s ? '' : 'not ') + 'ok 1 - %s'); console.log('1..1');").replace(
                '"$word" "$sum"', '"$sum" "$word"'
            )
        ),
    ),
)
