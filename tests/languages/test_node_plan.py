"""How repositories of JavaScript and TypeScript are read."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from backends.git import Repository
from backends.tree import Tree
from languages import javascript
from languages.draft import Context, NoPlanError
from languages.node.frameworks import FRAMEWORKS
from languages.node.package import glob_regex
from languages.node.plan import NodeDraft
from languages.node.scripts import expand
from languages.node.switches import BUILD, FORGIVING, IGNORE_SCRIPTS, NEWER_GYP
from languages.node.versions import allows, majors
from tests.languages.trees import tree_of

HERE = ("10", "12", "14", "16", "18", "20", "22", "24")
DAY = date(2023, 6, 20)
TEST = "test('one', () => {});\n"


def draft_of(
    tmp_path: Path, package: dict[str, object], more: dict[str, str], touched: tuple[str, ...] = ()
) -> NodeDraft:
    files = {"package.json": json.dumps(package, indent=2), "a.test.js": TEST} | more
    return javascript.draft(tree_of(tmp_path, files), Context(available=lambda: HERE, day=DAY, touched=touched))


def steps(draft: NodeDraft) -> str:
    return "\n".join(javascript.render(draft).dependency_steps)


@pytest.mark.parametrize(
    ("lock", "text", "line"),
    [
        ("package-lock.json", '{"lockfileVersion": 2}', "npm ci"),
        ("yarn.lock", "# yarn lockfile v1\n", "yarn install --non-interactive --no-progress --ignore-engines"),
        ("yarn.lock", "# x\n\n__metadata:\n  version: 6\n", "@yarnpkg/cli-dist@3.8.7\n"),
        ("pnpm-lock.yaml", "lockfileVersion: '6.0'\n", "pnpm@8\n"),
        ("other.txt", "", "npm install --no-package-lock $before"),
    ],
)
def test_the_lock_file_tells_the_package_manager(tmp_path: Path, lock: str, text: str, line: str) -> None:
    made = draft_of(tmp_path, {"scripts": {"test": "jest"}, "devDependencies": {"jest": "1"}}, {lock: text})
    assert line in steps(made)


def test_the_package_manager_that_is_named_goes_before_lock_files(tmp_path: Path) -> None:
    package = {"packageManager": "pnpm@8.6.1+sha256.aa", "scripts": {"test": "vitest"}}
    made = draft_of(tmp_path, package, {"pnpm-lock.yaml": "lockfileVersion: '6.0'\n"})
    assert "npm install -g pnpm@8.6.1" in steps(made)
    assert "--frozen-lockfile" in steps(made)


def test_ways_to_give_in_change_the_install_only(tmp_path: Path) -> None:
    made = draft_of(tmp_path, {"scripts": {"test": "jest"}}, {"package-lock.json": '{"lockfileVersion": 3}'})
    forgiving = replace(made, switches=made.switches | {FORGIVING, IGNORE_SCRIPTS})
    assert "npm install --legacy-peer-deps --ignore-scripts" in steps(forgiving)
    assert javascript.render(forgiving).test == javascript.render(made).test


@pytest.mark.parametrize(("node", "runs"), [("14", True), ("18", False)])
def test_an_old_npm_is_told_to_run_scripts_as_root_and_with_a_later_node_gyp(
    tmp_path: Path, node: str, runs: bool
) -> None:
    made = draft_of(tmp_path, {"scripts": {"test": "jest"}, "devDependencies": {"jest": "1"}}, {".nvmrc": node})
    assert ("npm_config_unsafe_perm=true" in steps(made)) is runs
    assert "node-gyp" not in steps(made)
    lines = steps(replace(made, switches=made.switches | {NEWER_GYP})).splitlines()
    assert lines.index("npm install -g node-gyp@8") < lines.index("npm install --no-package-lock $before")


def test_a_script_is_followed_to_its_runner_through_wrappers_and_other_scripts(tmp_path: Path) -> None:
    scripts = {
        "test": "npm run lint && npm-run-all --silent test:*",
        "lint": "eslint .",
        "test:unit": "TZ=UTC nyc -r lcov node_modules/.bin/mocha -r ts-node/register --reporter dot 'test/**/*.ts' "
        "--timeout 5000",
        "test:types": "tsd",
    }
    made = draft_of(tmp_path, {"scripts": scripts, "devDependencies": {"mocha": "^10"}}, {"test/b.ts": TEST})
    assert made.test.framework == "mocha"
    assert made.test.argv == ("env", "TZ=UTC", "mocha", "-r", "ts-node/register", "--timeout", "5000", "--exit")
    assert made.test.paths == ("test/**/*.ts",)
    assert javascript.defining_files(tree_of(tmp_path / "x", {"test/b.ts": TEST, "a.test.js": TEST}),
                                     javascript.render(made)) == ["test/b.ts"]  # fmt: skip


def test_what_the_test_script_builds_is_built_before_every_run(tmp_path: Path) -> None:
    scripts = {"pretest": "npm run build", "build": "tsc", "test": "node --test --test-reporter dot dist/"}
    made = draft_of(tmp_path, {"scripts": scripts}, {})
    assert made.test.framework == "node:test"
    assert made.test.argv == ("sh", "-c", '{ npm run --silent build; } >&2 && exec "$@"', "sh", "node")
    assert made.builds == ()


def test_what_ci_builds_before_the_tests_is_built_with_the_tree_until_it_is_given_up(tmp_path: Path) -> None:
    ci = "jobs:\n  a:\n    steps:\n      - run: npm ci\n      - run: npm run compile\n      - run: npm test\n"
    package = {"scripts": {"test": "jest", "compile": "rollup -c"}}
    made = draft_of(tmp_path, package, {".github/workflows/a.yml": ci})
    assert [step.count("npm run --offline compile") for step in javascript.render(made).source_steps] == [1]
    assert javascript.render(replace(made, switches=made.switches - {BUILD})).source_steps == ()


def test_the_package_of_the_change_is_tested_where_the_root_has_no_runner(tmp_path: Path) -> None:
    more = {
        f"packages/{name}/package.json": json.dumps({"name": name, "scripts": {"test": runner}})
        for name, runner in (("one", "jest --coverage"), ("two", "vitest run"))
    }
    package = {"workspaces": ["packages/*"], "scripts": {"test": "lerna run test"}}
    made = draft_of(tmp_path, package, more, touched=("packages/two/src/x.js",))
    assert (made.test.framework, made.test.argv, made.test.folder) == ("vitest", ("vitest",), "packages/two")
    assert javascript.render(made).kept_folders == (
        "node_modules", "packages/one/node_modules", "packages/two/node_modules",
    )  # fmt: skip


def test_tests_that_need_a_browser_are_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(NoPlanError, match=r"need a browser \(karma\)"):
        draft_of(tmp_path, {"scripts": {"test": "karma start --single-run"}}, {})


def test_a_dependency_from_a_forge_is_left_out_and_told(tmp_path: Path) -> None:
    package = {"scripts": {"test": "jest"}, "devDependencies": {"a": "ada/a#v1", "b": "file:../b", "c": "npm:x@1"}}
    made = draft_of(tmp_path, package, {})
    assert made.left_out == ("a",)
    assert ("left out", "a") in {(one.choice, one.value) for one in made.evidence}


def test_the_files_that_jest_takes_in_are_those_of_its_projects(tmp_path: Path) -> None:
    more = {
        "tests/jest.config.js": "module.exports = { projects: ['tests/unit/jest.config.js'] };\n",
        "tests/unit/jest.config.js": "module.exports = { rootDir: '../..', testRegex: 'unit/.*\\\\.tests\\\\.ts$' };\n",
        "tests/unit/a.tests.ts": TEST,
        "tests/other/b.tests.ts": TEST,
    }
    package = {"scripts": {"test": "jest --config=tests/jest.config.js --coverage"}}
    made = draft_of(tmp_path, package, more)
    tree = Tree(Repository(tmp_path / "repo"), "HEAD")
    assert javascript.defining_files(tree, javascript.render(made)) == ["tests/unit/a.tests.ts"]


def test_files_are_not_told_where_jest_computes_them(tmp_path: Path) -> None:
    made = draft_of(
        tmp_path, {"scripts": {"test": "jest"}}, {"jest.config.js": "module.exports = { testRegex: `a${b}` };\n"}
    )
    assert javascript.defining_files(Tree(Repository(tmp_path / "repo"), "HEAD"), javascript.render(made)) == []


def test_the_newest_node_of_ci_that_existed_is_chosen(tmp_path: Path) -> None:
    ci = (
        "jobs:\n  a:\n    strategy: {matrix: {node: [14, 17, 'lts/*', 22]}}\n    steps:\n"
        "      - uses: actions/setup-node@v3\n        with: {node-version: '${{ matrix.node }}'}\n"
        "      - run: npm test\n"
    )
    made = draft_of(tmp_path, {"scripts": {"test": "jest"}}, {".github/workflows/a.yml": ci})
    assert [one.value for one in made.versions] == ["18", "14"]
    assert made.versions[0].path == ".github/workflows/a.yml"


@pytest.mark.parametrize(
    ("text", "meant"),
    [("18.x", ["18"]), ("v16.13.0", ["16"]), ("lts/*", ["18"]), ("lts/gallium", ["16"]), ("lts/-1", ["16"]),
     ("latest", ["20"]), (">=14", ["14"]), ("x", [])],
)  # fmt: skip
def test_words_for_versions_mean_what_they_meant_on_the_day(text: str, meant: list[str]) -> None:
    assert majors(text, DAY) == meant


def test_engines_are_ranges_of_npm() -> None:
    assert [major for major in (14, 16, 18, 20) if allows("^14.18 || >=16.10 <19", major)] == [14, 16, 18]
    assert [major for major in (14, 16, 18) if allows("14 - 16", major)] == [14, 16]


def test_chains_and_redirections_are_taken_apart() -> None:
    found = list(expand("A=b jest x 2>&1 | tee out; yarn mocha && pnpm -r test", {}))
    assert [one.words for one in found] == [("jest", "x"), ("tee", "out"), ("mocha",), ("pnpm", "-r", "test")]


def test_globs_are_those_of_javascript() -> None:
    assert re.fullmatch(glob_regex("**/?(*.)+(spec|test).[jt]s?(x)"), "src/a.test.tsx")
    assert re.fullmatch(glob_regex("test/**/*.{js,ts}"), "test/a/b.ts")
    assert not re.fullmatch(glob_regex("test/*.js"), "test/a/b.js")


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda one: one.name)
@pytest.mark.parametrize("file", ["a/x.spec.ts", "test.js"])
def test_a_canary_is_a_test_with_the_word_in_its_name(framework: object, file: str, tmp_path: Path) -> None:
    canary = framework.canary  # type: ignore[attr-defined]
    script = f"word=abc sum=13 folder=.\nfile={canary.name([file])}\necho $file\n{canary.body}\n"
    name, _, text = subprocess.run(
        ["bash", "-euc", script], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.partition("\n")
    assert name.endswith(".spec.ts" if file.endswith("ts") else ".js")
    assert text.count("abc") == 1
    assert "13" in text
    assert text.count("\n") <= 3


def test_a_server_of_ci_comes_with_its_debian_packages(tmp_path: Path) -> None:
    workflow = (
        "jobs:\n  test:\n    services:\n      db: {image: 'postgres:15'}\n      queue: {image: 'rabbitmq:3'}\n"
        "    steps:\n      - run: npm test\n"
    )
    made = draft_of(tmp_path, {"scripts": {"test": "node --test"}}, {".github/workflows/ci.yml": workflow})
    assert [service.text for service in made.services] == ["postgresql"]
    assert "postgresql" in {package.text for package in made.system_packages}
