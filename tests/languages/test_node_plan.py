"""Drafts and plans of JavaScript and TypeScript repositories."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from backends.git import GitRepository
from backends.tree import CommitTree
from languages.draft import NoPlanError, PlanningContext
from languages.javascript import JAVASCRIPT
from languages.node.frameworks import FRAMEWORKS
from languages.node.package import convert_glob
from languages.node.plan import NodeDraft, drop_build
from languages.node.scripts import expand_scripts
from languages.node.switches import BUILD, IGNORE_SCRIPTS, NEWER_GYP, RELAXED_PEERS
from languages.node.versions import is_allowed, resolve_majors
from tests.languages.trees import build_tree

HERE = ("10", "12", "14", "16", "18", "20", "22", "24")
DAY = date(2023, 6, 20)
TEST = "test('one', () => {});\n"


def build_draft(
    tmp_path: Path, package: dict[str, object], more: dict[str, str], changed_paths: tuple[str, ...] = ()
) -> NodeDraft:
    files = {"package.json": json.dumps(package, indent=2), "a.test.js": TEST} | more
    return JAVASCRIPT.create_draft(
        build_tree(tmp_path, files), PlanningContext(list_available=lambda: HERE, day=DAY, changed_paths=changed_paths)
    )


def list_steps(draft: NodeDraft) -> str:
    return "\n".join(JAVASCRIPT.render_plan(draft).dependency_steps)


@pytest.mark.parametrize(
    ("lock", "text", "line"),
    [
        ("package-lock.json", '{"lockfileVersion": 2}', "npm ci"),
        ("yarn.lock", "# yarn lockfile v1\n", "yarn install --non-interactive --no-progress --ignore-engines"),
        ("yarn.lock", "# x\n\n__metadata:\n  version: 6\n", "@yarnpkg/cli-dist@3.8.7\n"),
        ("pnpm-lock.yaml", "lockfileVersion: '6.0'\n", "pnpm@8\n"),
        ("bun.lock", "{}\n", " bun install --no-progress --frozen-lockfile\n"),
        ("bun.lockb", "#!/usr/bin/env bun\n", " bun install --no-progress --frozen-lockfile\n"),
        ("other.txt", "", "npm install --no-package-lock $before"),
    ],
)
def test_the_lock_file_determines_the_package_manager(tmp_path: Path, lock: str, text: str, line: str) -> None:
    draft = build_draft(tmp_path, {"scripts": {"test": "jest"}, "devDependencies": {"jest": "1"}}, {lock: text})
    assert line in list_steps(draft)


MEMBER = {"packages/a/package.json": json.dumps({"name": "a", "dependencies": {"b": "workspace:*"}}, indent=1)}
PNPM = {"pnpm-workspace.yaml": "packages: ['packages/*']\n"}


def make_ci(line: str) -> dict[str, str]:
    return {".github/workflows/test.yml": f"jobs:\n  test:\n    steps:\n      - run: {line}\n      - run: npm test\n"}


@pytest.mark.parametrize(
    ("workspaces", "files", "value", "place"),
    [
        (False, PNPM, "pnpm@9", ("pnpm-workspace.yaml", 0)),
        (False, PNPM | MEMBER, "pnpm@9", ("pnpm-workspace.yaml", 0)),
        (True, PNPM | MEMBER, "pnpm@9", ("pnpm-workspace.yaml", 0)),
        (False, PNPM | MEMBER | make_ci("npm install"), "pnpm@9", ("pnpm-workspace.yaml", 0)),
        (False, PNPM | make_ci("npm install"), "npm", (".github/workflows/test.yml", 4)),
        (False, PNPM | MEMBER | make_ci("bun install"), "bun@1", (".github/workflows/test.yml", 4)),
        (False, {".pnpmfile.cjs": ""}, "pnpm@9", (".pnpmfile.cjs", 0)),
        (False, {".yarnrc.yml": "nodeLinker: node-modules\n"}, "berry@4.5.3", (".yarnrc.yml", 0)),
        (True, MEMBER, "berry@4.5.3", ("packages/a/package.json", 4)),
        (True, MEMBER | make_ci("yarn install"), "berry@4.5.3", (".github/workflows/test.yml", 4)),
        (True, MEMBER | make_ci("pnpm install"), "pnpm@9", (".github/workflows/test.yml", 4)),
        (True, make_ci("yarn install"), "yarn@1.22.22", (".github/workflows/test.yml", 4)),
        (True, {"packages/a/package.json": '{"name": "a", "dependencies": {"b": "*"}}'}, "npm", ("(default)", 0)),
        (False, {}, "npm", ("(default)", 0)),
        (False, PNPM | {"package-lock.json": '{"lockfileVersion": 2}'}, "npm", ("package-lock.json", 0)),
    ],
)
def test_without_a_lock_file_the_manager_is_one_that_can_install_the_project(
    workspaces: bool, files: dict[str, str], value: str, place: tuple[str, int], tmp_path: Path
) -> None:
    package: dict[str, object] = {"scripts": {"test": "jest"}, "devDependencies": {"jest": "1"}}
    draft = build_draft(tmp_path, package | ({"workspaces": ["packages/*"]} if workspaces else {}), files)
    [evidence] = [entry for entry in draft.evidence if entry.choice == "package_manager"]
    assert (evidence.value, (evidence.path, evidence.line)) == (value, place)


def declare_manager(manager: str) -> dict[str, object]:
    return {"packageManager": manager, "scripts": {"test": "jest"}, "devDependencies": {"jest": "1"}}


PNPM_OFF = "--config.minimum-release-age=0 --config.trust-policy=off"
YARN_OFF = "YARN_NPM_MINIMAL_AGE_GATE=0"
BUN_OFF = "--minimum-release-age=0"
NPM_OFF = "' .npmrc"


@pytest.mark.parametrize(
    ("declared", "path", "text", "switch", "gate"),
    [
        ("pnpm@10.20.0", "pnpm-workspace.yaml", "packages: []\nminimumReleaseAge: 10080\n", PNPM_OFF, 2),
        ("pnpm@10.20.0", "pnpm-workspace.yaml", "trustPolicy: no-downgrade\n", PNPM_OFF, 1),
        ("pnpm@10.20.0", ".npmrc", "a=1\nminimum-release-age = 99\n", PNPM_OFF, 2),
        ("pnpm@11.1.3", "other.txt", "", PNPM_OFF, 2),
        ("yarn@4.12.0", "other.txt", "", YARN_OFF, 2),
        ("yarn@4.5.3", ".yarnrc.yml", "nodeLinker: pnp\nnpmScopes:\n  a:\n    npmMinimalAgeGate: 1w\n", YARN_OFF, 4),
        ("yarn@3.8.7", ".yarnrc.yml", "yarnPath: .yarn/releases/yarn-4.13.0.cjs\n", YARN_OFF, 2),
        ("bun@1.3.1", "bunfig.toml", "[install]\nminimumReleaseAge = 259200\n", BUN_OFF, 2),
        ("npm@11.12.0", ".npmrc", "fund=false\nmin-release-age=7\n", NPM_OFF, 2),
    ],
)
def test_gates_by_the_age_of_packages_are_off(
    declared: str, path: str, text: str, switch: str, gate: int, tmp_path: Path
) -> None:
    files = {path: text, ".yarn/releases/yarn-4.13.0.cjs": ""}
    draft = build_draft(tmp_path, declare_manager(declared), files)
    assert switch in list_steps(draft)
    [evidence] = [entry for entry in draft.evidence if entry.choice == "age_gate"]
    assert evidence.line == gate
    assert evidence.path in {path, "package.json"}


NPM_NAMES = "\ufeff" + "".join(
    f"{name}=2015-01-01\n"
    for name in (
        '"before"',
        "'before'",
        '  "before" ',
        "before[]",
        '"before[]"',
        "before ; of old",
        "before # of old",
        '"be\\u0066ore"',
        """'"before"'""",
        "\t'min-release-age'",
        '"registry"',
        '"before',
        "BEFORE",
        "before.x",
        "; before",
        "#before",
        "//host/:before",
        "[before]",
    )
)
"""Settings as npm reads them: `npm config get before` has the date of the first nine, and none of the others."""
OTHER_NAMES = "".join(NPM_NAMES.splitlines(keepends=True)[10:])


@pytest.mark.parametrize(
    ("declared", "path", "text", "left"),
    [
        (
            "npm@11.12.0",
            ".npmrc",
            "fund=false\nmin-release-age=7\n before = 2020-01-01\na=before=1\n",
            "fund=false\na=before=1\n",
        ),
        ("npm@11.12.0", ".npmrc", NPM_NAMES, OTHER_NAMES),
        (
            "yarn@4.13.0",
            ".yarnrc.yml",
            "npmMinimalAgeGate: 3d\nnpmScopes:\n  a:\n    'npmMinimalAgeGate': 1w\nnodeLinker: pnp\n",
            "npmScopes:\n  a:\nnodeLinker: pnp\n",
        ),
    ],
)
def test_gates_that_no_switch_overrides_are_removed_from_their_file(
    declared: str, path: str, text: str, left: str, tmp_path: Path
) -> None:
    steps = list_steps(build_draft(tmp_path / "tree", declare_manager(declared), {path: text})).splitlines()
    (tmp_path / path).write_text(text)
    [step] = [step for step in steps if "sed -i" in step and path in step]
    subprocess.run(["bash", "-c", step], cwd=tmp_path, check=True)
    assert (tmp_path / path).read_text() == left


@pytest.mark.parametrize("declared", ["pnpm@10.20.0", "yarn@4.5.3", "bun@1.3.1", "npm@11.12.0", "yarn@1.22.22"])
def test_without_a_gate_nothing_is_switched(declared: str, tmp_path: Path) -> None:
    files = {"pnpm-workspace.yaml": "minimumReleaseAgeExclude: [a]\n", ".npmrc": "fund=no\n", ".yarnrc.yml": "a: 1\n"}
    draft = build_draft(tmp_path, declare_manager(declared), files)
    assert not [switch for switch in (PNPM_OFF, YARN_OFF, BUN_OFF, NPM_OFF) if switch in list_steps(draft)]
    assert not [entry for entry in draft.evidence if entry.choice == "age_gate"]


@pytest.mark.parametrize(("action", "version"), [("pnpm/action-setup@v5", "9.1"), ("pnpm/setup@v1", "10")])
def test_a_pnpm_of_ci_that_cannot_read_the_lock_file_is_passed_over(tmp_path: Path, action: str, version: str) -> None:
    job = "    steps:\n      - uses: {}\n        with: {{version: '{}'}}\n      - run: pnpm test\n"
    ci = f"jobs:\n  old:\n{job.format('pnpm/action-setup@v1', 3)}  new:\n{job.format(action, version)}"
    files = {"pnpm-lock.yaml": "lockfileVersion: '9.0'\n", ".github/workflows/test.yml": ci}
    draft = build_draft(tmp_path, {"scripts": {"test": "jest"}}, files)
    assert f"npm install -g pnpm@{version}\n" in list_steps(draft)


def test_a_declared_package_manager_takes_precedence_over_lock_files(tmp_path: Path) -> None:
    package = {"packageManager": "pnpm@8.6.1+sha256.aa", "scripts": {"test": "vitest"}}
    draft = build_draft(tmp_path, package, {"pnpm-lock.yaml": "lockfileVersion: '6.0'\n"})
    assert "npm install -g pnpm@8.6.1" in list_steps(draft)
    assert "--frozen-lockfile" in list_steps(draft)


def test_relaxing_switches_change_only_the_install(tmp_path: Path) -> None:
    draft = build_draft(tmp_path, {"scripts": {"test": "jest"}}, {"package-lock.json": '{"lockfileVersion": 3}'})
    relaxed = replace(draft, switches=draft.switches | {RELAXED_PEERS, IGNORE_SCRIPTS})
    assert "npm install --legacy-peer-deps --ignore-scripts" in list_steps(relaxed)
    assert JAVASCRIPT.render_plan(relaxed).test == JAVASCRIPT.render_plan(draft).test


@pytest.mark.parametrize(("node", "runs"), [("14", True), ("18", False)])
def test_an_old_npm_runs_install_scripts_as_root_and_with_a_newer_node_gyp(
    tmp_path: Path, node: str, runs: bool
) -> None:
    draft = build_draft(tmp_path, {"scripts": {"test": "jest"}, "devDependencies": {"jest": "1"}}, {".nvmrc": node})
    assert ("npm_config_unsafe_perm=true" in list_steps(draft)) is runs
    assert "node-gyp" not in list_steps(draft)
    lines = list_steps(replace(draft, switches=draft.switches | {NEWER_GYP})).splitlines()
    assert lines.index("npm install -g node-gyp@8") < lines.index("npm install --no-package-lock $before")


def test_a_script_is_expanded_to_its_runner_through_wrappers_and_other_scripts(tmp_path: Path) -> None:
    scripts = {
        "test": "npm run lint && npm-run-all --silent test:*",
        "lint": "eslint .",
        "test:unit": "TZ=UTC nyc -r lcov node_modules/.bin/mocha -r ts-node/register --reporter dot 'test/**/*.ts' "
        "--timeout 5000",
        "test:types": "tsd",
    }
    draft = build_draft(tmp_path, {"scripts": scripts, "devDependencies": {"mocha": "^10"}}, {"test/b.ts": TEST})
    assert draft.test.framework == "mocha"
    assert draft.test.argv == ("env", "TZ=UTC", "mocha", "-r", "ts-node/register", "--timeout", "5000", "--exit")
    assert draft.test.paths == ("test/**/*.ts",)
    assert JAVASCRIPT.find_test_files(
        build_tree(tmp_path / "x", {"test/b.ts": TEST, "a.test.js": TEST}), JAVASCRIPT.render_plan(draft)
    ) == ["test/b.ts"]


@pytest.mark.parametrize(
    "program", ["./node_modules/mocha/bin/_mocha", "node_modules/jest/bin/jest.js", "./node_modules/vitest/vitest.mjs"]
)
def test_an_installed_runner_is_known_by_its_path(tmp_path: Path, program: str) -> None:
    draft = build_draft(tmp_path, {"scripts": {"test": f"{program} tests/a.js"}}, {"tests/a.js": TEST})
    assert (program in draft.test.argv, draft.test.paths) == (True, ("tests/a.js",))


def test_builds_of_the_test_script_run_before_every_test_run(tmp_path: Path) -> None:
    scripts = {"pretest": "npm run build", "build": "tsc", "test": "node --test --test-reporter dot dist/"}
    draft = build_draft(tmp_path, {"scripts": scripts}, {})
    assert draft.test.framework == "node:test"
    assert draft.test.argv == ("sh", "-c", '{ npm run --silent build; } >&2 && exec "$@"', "sh", "node")
    assert draft.build_lines == ()


@pytest.mark.parametrize(
    ("package", "files"),
    [
        ({"scripts": {"test": "mocha --recursive"}}, {}),
        ({"scripts": {"test": "mocha"}, "mocha": {"recursive": True}}, {}),
        ({"scripts": {"test": "mocha"}}, {".mocharc.yml": "recursive: true\n"}),
        ({"scripts": {"test": "mocha"}}, {"test/mocha.opts": "--recursive\n"}),
    ],
)
def test_files_below_subfolders_are_expected_of_a_mocha_that_enters_them(
    tmp_path: Path, package: dict[str, Any], files: dict[str, str]
) -> None:
    files = {**files, "test/a.js": TEST, "test/deep/b.js": TEST, "test/help.js": "export function test(options) {}\n"}
    plan = JAVASCRIPT.render_plan(build_draft(tmp_path, package, files))
    plan = plan.model_copy(update={"test": plan.test.model_copy(update={"paths": ()})})
    test_files = JAVASCRIPT.find_test_files(
        build_tree(tmp_path / "again", files | {"package.json": json.dumps(package)}), plan
    )
    assert test_files == ["test/a.js", "test/deep/b.js"]


def test_a_build_in_the_script_of_the_runner_runs_without_the_runner(tmp_path: Path) -> None:
    scripts = {"pretest": "tsc -p check.json", "test": "A='b c' tsc -p tsconfig.build.json && vitest --run"}
    configs = {"check.json": '{\n  "compilerOptions": {\n    "noEmit": true\n  }\n}\n', "tsconfig.build.json": "{}\n"}
    draft = build_draft(tmp_path, {"scripts": scripts}, configs)
    assert draft.test.argv[2:] == ("{ A='b c' tsc -p tsconfig.build.json; } >&2 && exec \"$@\"", "sh", "vitest")


def test_scripts_that_are_named_builds_run_before_the_tests_whatever_program_builds(tmp_path: Path) -> None:
    scripts = {
        "pretest": "run-s build:* lint",
        "build:browser": "node -r esm bundle && npm run minify",
        "build:docs": "node write-pages",
        "minify": "uglifyjs a.js",
        "lint": "node lint.js",
        "test": "node check.js && node scripts/compile.js && mocha",
    }
    draft = build_draft(tmp_path, {"scripts": scripts}, {})
    builds = "npm run --silent build:browser && node scripts/compile.js"
    assert draft.test.argv[2:4] == (f'{{ {builds}; }} >&2 && exec "$@"', "sh")
    without = drop_build(draft)
    assert (without.test.argv, BUILD in without.switches) == (draft.test.argv[4:], False)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("include: ['src/(*.)+(spec|test).+(ts|js)'], exclude: ['**/case.test.ts']", "src/a"),
        ("projects: ['packages/*/vitest.config.ts']", "packages/one/c"),
        ("projects: ['packages/*']", "packages/one/c"),
        (
            "projects: [{test: {include: ['src/a.*'], exclude: ['lib/**']}}, {test: {include: ['lib/*']}}]",
            "lib/b src/a",
        ),
        (
            "projects: [{test: {name: 'unit-one', exclude: ['{lib,packages}/**']}}, {test: {name: 'e2e'}}]",
            "src/a src/case",
        ),
        ("include: ['lib/**'], projects: [{extends: true, test: {name: 'unit'}}]", "lib/b"),
        ("globals: true", "lib/b packages/one/c src/a src/case"),
    ],
    ids=["groups", "files of projects", "folders of projects", "projects", "selected project", "inherited", "default"],
)
def test_the_files_of_vitest_are_those_that_its_projects_include(tmp_path: Path, settings: str, expected: str) -> None:
    # The apostrophe of the comment begins no string.
    config = (
        "export default { test: {\n  coverage: {\n    // it's {\n    include: ['src/**/*.ts'],\n"
        f"    exclude: [...defaults, '**/*.test.ts'],\n  }},\n  {settings},\n}} }}\n"
    )
    names = ("src/a.test.ts", "src/case.test.ts", "lib/b.test.ts", "packages/one/c.test.ts")
    files = {"vitest.config.ts": config, "packages/one/vitest.config.ts": "export default {}"}
    files |= dict.fromkeys(names, TEST)
    draft = build_draft(tmp_path, {"scripts": {"test": "vitest --project=unit*"}}, files)
    plan = JAVASCRIPT.render_plan(draft)
    test_files = JAVASCRIPT.find_test_files(build_tree(tmp_path / "again", files), plan)
    assert [name.removesuffix(".test.ts") for name in test_files] == expected.split()


def test_patterns_of_borp_are_files_of_the_tests(tmp_path: Path) -> None:
    scripts = {
        "test": "npm run one && npm run two",
        "one": "borp -p 'test/*.js' -t 9",
        "two": "borp --pattern=lib/*.js -t 9",
    }
    files = dict.fromkeys(("test/a.js", "lib/b.js", "other/c.js"), TEST)
    draft = build_draft(tmp_path, {"scripts": scripts}, files)
    assert (draft.test.argv, draft.test.paths) == (("borp", "-t", "9"), ("test/*.js", "lib/*.js"))
    plan = JAVASCRIPT.render_plan(draft)
    assert JAVASCRIPT.find_test_files(build_tree(tmp_path / "again", files), plan) == ["lib/b.js", "test/a.js"]


def test_bun_installs_and_runs_tests(tmp_path: Path) -> None:
    ci = "jobs:\n  test:\n    steps:\n      - uses: oven-sh/setup-bun@v2\n        with: {bun-version: 1.2.3}\n"
    ci += "      - run: bun install\n      - run: bun test --coverage --timeout 9 src\n"
    files = {".github/workflows/ci.yml": ci} | dict.fromkeys(
        ("src/b_spec.ts", "src/c.test.ts", "other/d.test.ts"), TEST
    )
    draft = build_draft(tmp_path, {"scripts": {"test": "echo"}}, files)
    assert "npm install -g bun@1.2.3\n" in list_steps(draft)
    assert " bun install --no-progress --no-save\n" in list_steps(draft)
    assert (draft.test.framework, draft.test.argv) == ("bun", ("bun", "test", "--timeout", "9"))
    plan = JAVASCRIPT.render_plan(draft)
    test_files = JAVASCRIPT.find_test_files(build_tree(tmp_path / "again", files), plan)
    assert test_files == ["src/b_spec.ts", "src/c.test.ts"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("bun test a", ("bun", "test", "a")),
        ("bun run test", ("vitest",)),
        ("bunx --bun jest", ("jest",)),
        ("bun jest", ("jest",)),
    ],
)
def test_scripts_and_programs_are_started_by_bun(line: str, words: tuple[str, ...]) -> None:
    assert [script.words for script in expand_scripts(line, {"test": "vitest"})] == [words]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("istanbul cover _mocha -- -R spec test/a.js", ("mocha", "-R", "spec", "test/a.js")),
        ("istanbul cover --dir out -x vendor _mocha -- -R spec", ("mocha", "-R", "spec")),
        ("istanbul cover _mocha --report none --dir out -R test/a.js", ("mocha", "test/a.js")),
    ],
)
def test_istanbul_takes_options_wherever_they_stand(line: str, words: tuple[str, ...]) -> None:
    assert [script.words for script in expand_scripts(line, {})] == [words]


@pytest.mark.parametrize(
    ("more", "paths"),
    [
        ({}, ("tests/lib/**/*.js", "a.test.js", "tests/*.js")),
        ({"test/b.js": TEST}, ()),
        ({".mocharc.json": '{"spec": "tests"}'}, ()),
    ],
    ids=["no folder", "default folder", "settings"],
)
def test_mocha_without_its_folder_runs_the_folders_of_tests(
    tmp_path: Path, more: dict[str, str], paths: tuple[str, ...]
) -> None:
    names = ("tests/a.js", "tests/lib/b.js", "tests/lib/c/d.js", "tests/fixtures/e.js", "tests/bench/f.js")
    files = dict.fromkeys(names, "ruleTester.run('one', rule, {});\n") | more
    draft = build_draft(tmp_path, {"scripts": {"test": "mocha"}}, files)
    assert draft.test.paths == paths


def test_tools_of_the_build_before_the_tests_are_installed(tmp_path: Path) -> None:
    scripts = {"build": "tsc && tsd", "test": "npm run build && mocha"}
    package = {"scripts": scripts, "devDependencies": {"mocha": "1", "tsd": "1", "xo": "1"}}
    draft = build_draft(tmp_path, package, {})
    assert draft.test.argv[2] == '{ npm run --silent build; } >&2 && exec "$@"'
    assert draft.excluded_packages == ("xo",)


def test_ci_builds_before_the_tests_run_with_the_tree_unless_disabled(tmp_path: Path) -> None:
    ci = "jobs:\n  a:\n    steps:\n      - run: npm ci\n      - run: npm run compile\n      - run: npm test\n"
    package = {"scripts": {"test": "jest", "compile": "rollup -c"}}
    draft = build_draft(tmp_path, package, {".github/workflows/a.yml": ci})
    assert [step.count("npm run --offline compile") for step in JAVASCRIPT.render_plan(draft).source_steps] == [1]
    assert JAVASCRIPT.render_plan(replace(draft, switches=draft.switches - {BUILD})).source_steps == ()


def test_the_changed_package_is_tested_if_the_root_has_no_runner(tmp_path: Path) -> None:
    more = {
        f"packages/{name}/package.json": json.dumps({"name": name, "scripts": {"test": runner}})
        for name, runner in (("one", "jest --coverage"), ("two", "vitest run"))
    }
    package = {"workspaces": ["packages/*"], "scripts": {"test": "lerna run test"}}
    draft = build_draft(tmp_path, package, more, changed_paths=("packages/two/src/x.js",))
    assert (draft.test.framework, draft.test.argv, draft.test.folder) == ("vitest", ("vitest",), "packages/two")
    assert JAVASCRIPT.render_plan(draft).kept_folders == (
        "node_modules",
        "packages/one/node_modules",
        "packages/two/node_modules",
    )


@pytest.mark.parametrize(
    ("scripts", "argv"),
    [
        ({"test": "npm run go -- --slow 9 'test/**/*.js'", "go": "node bin/mocha.js --bail"}, ("--slow", "9")),
        ({"test": "./bin/mocha.js 'test/**/*.js'"}, ()),
        ({"test": "./run-all.sh"}, ()),
    ],
)
def test_a_package_that_is_the_runner_is_run_from_the_tree(
    scripts: dict[str, str], argv: tuple[str, ...], tmp_path: Path
) -> None:
    package = {"name": "mocha", "bin": {"mocha": "./bin/mocha.js"}, "scripts": scripts, "devDependencies": {"tap": "1"}}
    plan = JAVASCRIPT.render_plan(build_draft(tmp_path, package, {"test/a.js": TEST}))
    assert plan.test.framework == "mocha"
    start = ("node", "bin/mocha.js") if "./bin" not in scripts["test"] else ("./bin/mocha.js",)
    assert plan.test.argv[: len(start) + len(argv)] == (*start, *argv)


@pytest.mark.parametrize(
    ("script", "argv", "paths"),
    [
        ("uvu test '\\.test\\.js$'", ("node",), ("test/**/*.test.js",)),
        ("uvu -r esm test -i fixtures", ("node", "-r", "esm"), ("test",)),
        ("uvu test '(a|b).js'", ("node",), ("test",)),
    ],
)
def test_each_file_of_uvu_runs_by_itself(
    script: str, argv: tuple[str, ...], paths: tuple[str, ...], tmp_path: Path
) -> None:
    test = build_draft(tmp_path, {"scripts": {"test": script}}, {"test/a.test.js": TEST}).test
    assert (test.framework, test.argv, test.paths) == ("tap", argv, paths)


@pytest.mark.parametrize(
    ("changed", "paths"),
    [((), ("test/whole/*.js",)), (("lib/a.js", "test/unit/b/c.js"), ("test/unit/**/*.js", "test/more"))],
)
def test_of_suites_with_different_options_that_with_the_changed_tests_is_run(
    changed: tuple[str, ...], paths: tuple[str, ...], tmp_path: Path
) -> None:
    scripts = {
        "test": "npm run whole && npm run unit && npm run more",
        "whole": "mocha --timeout 10000 'test/whole/*.js'",
        "unit": "mocha 'test/unit/**/*.js'",
        "more": "mocha test/more",
    }
    files = dict.fromkeys(("test/whole/a.js", "test/unit/b/c.js", "test/more/d.js"), TEST)
    assert build_draft(tmp_path, {"scripts": scripts}, files, changed).test.paths == paths


def test_tests_that_need_a_browser_are_rejected_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(NoPlanError, match=r"need a browser \(karma\)"):
        build_draft(tmp_path, {"scripts": {"test": "karma start --single-run"}}, {})


def test_a_dependency_from_a_forge_is_excluded_and_reported(tmp_path: Path) -> None:
    package = {"scripts": {"test": "jest"}, "devDependencies": {"a": "ada/a#v1", "b": "file:../b", "c": "npm:x@1"}}
    draft = build_draft(tmp_path, package, {})
    assert draft.excluded_packages == ("a",)
    assert ("left out", "a") in {(evidence.choice, evidence.value) for evidence in draft.evidence}


def test_only_packages_that_nothing_but_development_lists_can_be_left_out(tmp_path: Path) -> None:
    package = {
        "scripts": {"test": "jest"},
        "dependencies": {"a": "1"},
        "peerDependencies": {"b": "1"},
        "devDependencies": {"a": "1", "b": "1", "c": "1"},
    }
    draft = build_draft(tmp_path, package, {"package-lock.json": '{"lockfileVersion": 3}'})
    assert [name for name in "abcd" if draft.leave_out(name) != draft] == ["c"]
    reduced = draft.leave_out("c")
    assert reduced.leave_out("c") == reduced
    # npm ci would reject a lock file that lists more than package.json
    steps = {
        variant.excluded_packages: JAVASCRIPT.render_plan(variant).dependency_steps for variant in (draft, reduced)
    }
    assert ["npm ci" in " ".join(steps[key]) for key in ((), ("c",))] == [True, False]


def test_jest_includes_the_files_of_its_projects(tmp_path: Path) -> None:
    more = {
        "tests/jest.config.js": "module.exports = { projects: ['tests/unit/jest.config.js'] };\n",
        "tests/unit/jest.config.js": "module.exports = { rootDir: '../..', testRegex: 'unit/.*\\\\.tests\\\\.ts$' };\n",
        "tests/unit/a.tests.ts": TEST,
        "tests/other/b.tests.ts": TEST,
    }
    package = {"scripts": {"test": "jest --config=tests/jest.config.js --coverage"}}
    draft = build_draft(tmp_path, package, more)
    tree = CommitTree(GitRepository(tmp_path / "repo"), "HEAD")
    assert JAVASCRIPT.find_test_files(tree, JAVASCRIPT.render_plan(draft)) == ["tests/unit/a.tests.ts"]


def test_no_files_are_expected_if_jest_computes_its_patterns(tmp_path: Path) -> None:
    draft = build_draft(
        tmp_path, {"scripts": {"test": "jest"}}, {"jest.config.js": "module.exports = { testRegex: `a${b}` };\n"}
    )
    assert (
        JAVASCRIPT.find_test_files(CommitTree(GitRepository(tmp_path / "repo"), "HEAD"), JAVASCRIPT.render_plan(draft))
        == []
    )


def test_the_newest_node_in_ci_that_existed_is_selected(tmp_path: Path) -> None:
    ci = (
        "jobs:\n  a:\n    strategy: {matrix: {node: [14, 17, 'lts/*', 22]}}\n    steps:\n"
        "      - uses: actions/setup-node@v3\n        with: {node-version: '${{ matrix.node }}'}\n"
        "      - run: npm test\n"
    )
    draft = build_draft(tmp_path, {"scripts": {"test": "jest"}}, {".github/workflows/a.yml": ci})
    assert [version.value for version in draft.versions] == ["18", "14"]
    assert draft.versions[0].path == ".github/workflows/a.yml"


@pytest.mark.parametrize(
    ("text", "majors"),
    [
        ("18.x", ["18"]),
        ("v16.13.0", ["16"]),
        ("lts/*", ["18"]),
        ("lts/gallium", ["16"]),
        ("lts/-1", ["16"]),
        ("latest", ["20"]),
        (">=14", ["14"]),
        ("x", []),
    ],
)
def test_version_aliases_resolve_as_of_the_date(text: str, majors: list[str]) -> None:
    assert resolve_majors(text, DAY) == majors


@pytest.mark.parametrize(
    ("engines", "day", "versions"),
    [
        ("", date(2024, 3, 17), ["20", "18", "16"]),
        ("", date(2024, 6, 1), ["20", "18", "16", "22"]),
        (">=18", date(2024, 6, 1), ["20", "18", "22"]),
    ],
    ids=["nothing", "one had just been released", "engines"],
)
def test_other_versions_follow_where_the_project_lists_none(
    tmp_path: Path, engines: str, day: date, versions: list[str]
) -> None:
    package = {"scripts": {"test": "mocha"}, "devDependencies": {"mocha": "^10"}, "engines": {"node": engines}}
    tree = build_tree(tmp_path, {"package.json": json.dumps(package), "test/a.test.js": "it('a', () => {});\n"})
    available = [release.version for release in JAVASCRIPT.releases]
    draft = JAVASCRIPT.create_draft(tree, PlanningContext(list_available=lambda: available, day=day))
    assert [version.value for version in draft.versions] == versions


def test_engines_are_npm_ranges() -> None:
    assert [major for major in (14, 16, 18, 20) if is_allowed("^14.18 || >=16.10 <19", major)] == [14, 16, 18]
    assert [major for major in (14, 16, 18) if is_allowed("14 - 16", major)] == [14, 16]


def test_chains_and_redirections_are_split() -> None:
    scripts = list(expand_scripts("A=b jest x 2>&1 | tee out; yarn mocha && pnpm -r test", {}))
    assert [script.words for script in scripts] == [("jest", "x"), ("tee", "out"), ("mocha",), ("pnpm", "-r", "test")]


def test_javascript_globs_are_converted_to_regexes() -> None:
    assert re.fullmatch(convert_glob("**/?(*.)+(spec|test).[jt]s?(x)"), "src/a.test.tsx")
    assert re.fullmatch(convert_glob("test/**/*.{js,ts}"), "test/a/b.ts")
    assert not re.fullmatch(convert_glob("test/*.js"), "test/a/b.js")


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda item: item.name)
@pytest.mark.parametrize("file", ["a/x.spec.ts", "test.js"])
def test_a_canary_is_a_test_with_the_random_word_in_its_name(framework: object, file: str, tmp_path: Path) -> None:
    canary = framework.canary  # type: ignore[attr-defined]
    script = f"word=abc sum=13 folder=.\nfile={canary.name([file])}\necho $file\n{canary.body}\n"
    name, _, text = subprocess.run(
        ["bash", "-euc", script], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.partition("\n")
    assert name.endswith(".spec.ts" if file.endswith("ts") else ".js")
    assert text.count("abc") == 1
    assert "13" in text
    assert text.count("\n") <= 3


def test_a_server_in_ci_adds_its_debian_packages(tmp_path: Path) -> None:
    workflow = (
        "jobs:\n  test:\n    services:\n      db: {image: 'postgres:15'}\n      queue: {image: 'rabbitmq:3'}\n"
        "    steps:\n      - run: npm test\n"
    )
    draft = build_draft(tmp_path, {"scripts": {"test": "node --test"}}, {".github/workflows/ci.yml": workflow})
    assert [service.text for service in draft.services] == ["postgresql"]
    assert "postgresql" in {package.text for package in draft.system_packages}
