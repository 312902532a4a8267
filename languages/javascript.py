"""JavaScript on Node and bun: runners of tests, and packages by npm, yarn, pnpm or bun."""

from __future__ import annotations

import json

from languages import parsing
from languages.base import Language
from languages.controls import COMMON_OPPOSITES, ControlSites, pair_words
from languages.habits import Habits
from languages.messages import CONTAIN_CALLS, MessageChecks
from languages.node import fallbacks, files, frameworks, releases, switches
from languages.node.files import find_test_files
from languages.node.loading import HOOK
from languages.node.plan import create_draft, render_plan
from languages.rewriting import SIGNS, Rewrites
from languages.weak_tests import WeakTestSyntax

OPPOSITES = pair_words(
    (
        ("strictEqual", "notStrictEqual"),
        ("deepEqual", "notDeepEqual"),
        ("deepStrictEqual", "notDeepStrictEqual"),
        ("toBeTruthy", "toBeFalsy"),
        ("toBeDefined", "toBeUndefined"),
    )
)

DECODER = 'eval(Buffer.from("@@", "base64").toString());\n'
"""Evaluated inside a CommonJS module, with access to its names. ES modules have imports, which `eval` rejects."""

SILENT_EXPECTATION = (
    "(() => { const all = new Proxy(() => all, { get: (_, key) => (key === 'then' ? undefined : all) }); return all; })"
)
"""Stands for `expect`: every member and every call of its result is the result, which can be awaited."""
JAVASCRIPT = Language(
    name="javascript",
    title="JavaScript",
    suffixes=(".js", ".jsx", ".mjs", ".cjs"),
    test_patterns=(
        r"(^|/)__(tests|mocks|snapshots|fixtures)__/",
        r"[._-](test|tests|spec|specs)\.[cm]?[jt]sx?(\.snap|\.md)?$",
        r"\.test-d\.[cm]?tsx?$",
        r"^(test|spec|e2e|cypress)/",
        r"^packages/[^/]+/(test|spec)/",
        r"(^|/)(test|spec|e2e|cypress)/([^/]+/)*[^/]+\.([cm]?[jt]sx?|vue|snap)$",
        r"^tests?([-_.][^/]*)?\.[cm]?[jt]sx?$",
    ),
    runner_patterns=(
        r"(^|/)(jest|vitest|ava|karma|playwright|cypress|wdio|wtr|web-test-runner)\.(config|conf|setup|workspace|projects|base)[^/]*$",
        r"(^|/)(jest|vitest|test|tests)[-_.]?setup[^/]*\.[cm]?[jt]sx?$",
        r"(^|/)\.(mocharc|taprc|borp|nycrc|c8rc)[^/]*$",
        r"(^|/)mocha\.opts$",
        r"(^|/)bunfig\.toml$",
    ),
    config_patterns=(r"(^|/)package\.json$", r"(^|/)vite\.config\.[cm]?[jt]s$"),
    test_file_pattern=files.TEST_FILE,
    kept_folders=("node_modules",),
    bin_folders=(f"{releases.PREFIX}/bin",),
    releases=releases.RELEASES,
    default_version=releases.DEFAULT,
    frameworks=frameworks.FRAMEWORKS,
    switches=switches.SWITCHES,
    fallbacks=fallbacks.FALLBACKS,
    reserved_variables=("NODE_TEST_CONTEXT", r"JEST_.*"),
    version_files=(r"(^|/)(package\.json|\.nvmrc)$",),
    create_draft=create_draft,
    render_plan=render_plan,
    find_test_files=find_test_files,
    test_command="npm test --",
    syntaxes=(parsing.JAVASCRIPT,),
    weak_tests=WeakTestSyntax(
        skips=r"\.(skip|skipIf|runIf)\b|\b(this|ctx|context|t)\.skip$",
        lookups=r"\brequire\.resolve\(|\b(which|commandExists)(\.sync|Sync)?\(",
        missing=r"\b(require|import)\((.|\n)*\bcatch\b",
    ),
    controls=ControlSites(
        compares_any_types=True,
        empties=("[]", "{}", '""', "''", "null", "undefined", "0", "false"),
        max_instances=1000,
        silent_calls=(
            (r"^expect$", SILENT_EXPECTATION),
            (r"^assert(\.\w+)?$", "(() => true)"),
        ),
        opposites={**COMMON_OPPOSITES, **OPPOSITES},
        matchers=r"to[A-Z]\w*$",
        exceptions=("TypeError", "RangeError", "SyntaxError", "ReferenceError"),
    ),
    messages=MessageChecks(contain_calls=rf"{CONTAIN_CALLS}|rejectedWith"),
    rewrites=Rewrites(decoders={".js": DECODER, ".cjs": DECODER}, signs=SIGNS),
    exploit_files={
        "jest.config.js": b"process.exit(0);\n",
        ".mocharc.json": json.dumps({"grep": "nothing-matches", "forbidOnly": False}).encode(),
        "vitest.config.mjs": b"process.exit(0);\n",
    },
    exploit_programs=("node", "npm", "npx"),
    load_hook=HOOK,
    habits=Habits(
        test_commands=(
            r"(npm|pnpm|yarn|bun)( run)? \S*test\S*|(npx (-\S+ )*)?(jest|mocha|vitest|ava|tap|jasmine)|"
            r"node (--\S+ )*--test"
        ),
        output=r"\bconsole\.\w+\(",
        output_example="console.log('here');",
        function_example="\nfunction addedByHand(x) {\n{body}\n    return x;\n}",
    ),
)
