from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from languages.registry import detect_language
from miner.changes import Reason
from miner.licenses import identify, is_allowed, parse_license_files
from miner.rules import RULES
from tests.helpers import TinyRepo
from tests.miner.conftest import FIX, MIT, MinerHarness

GPL = "GNU GENERAL PUBLIC LICENSE\n Version 3, 29 June 2007"
LGPL = "GNU LESSER GENERAL PUBLIC LICENSE\n Version 3, 29 June 2007"
LATER = "License :: OSI Approved :: GNU General Public License v3 or later (GPLv3+)"
HEADER = "# SPDX-License-Identifier:"
PSF = "PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2\n"
FindReason = Callable[..., str]
SRC = {"pkg/core.py": FIX["pkg/core.py"]}
TESTS = {"tests/test_core.py": FIX["tests/test_core.py"]}


@pytest.mark.parametrize(
    ("expected", "message", "files"),
    [
        ("candidate", "Make one() return one", FIX),
        ("empty", "Nothing happens in here", {}),
        ("no-tests", "Make one() return one", SRC),
        ("no-tests", "Make one() return one", SRC | {"tests/data.json": "{}\n"}),
        ("no-tests", "Make one() return one", SRC | {"pkg/tests.py": "x = 1\n"}),
        ("no-source", "Test what one() returns", TESTS),
        ("no-source", "Say what one() returns", TESTS | {"docs/conf.py": "x = 1\n", "README": "x\n"}),
        ("not-a-change", 'Revert "Make one() return two"', FIX),
        ("not-a-change", "revert: make one() return two", FIX),
        ("not-a-change", "[2.x] Make one() return one", FIX),
        ("not-a-change", "Backport of #12 to 2.x", FIX),
        ("not-a-change", "Bump version to 1.2", FIX),
        ("not-a-change", "Release 1.2.0 of the widget", FIX),
        ("not-a-change", "chore(deps): bump foo from 1.0 to 2.0", FIX),
        ("candidate", "Update the version check in one()", FIX),
        ("candidate", "Reverse the order of results", FIX),
        ("no-statement", "wip", FIX),
        ("no-statement", "Fix #12", FIX),
        ("vendored-or-generated", "Take a newer vendored library", TESTS | {"pkg/_vendor/lib/x.py": "x = 1\n"}),
        ("language-not-supported", "Make main() return one", TESTS | {"a.zig": "x\n", "b.zig": "y\n"}),
        ("version-bump", "Get ready for what comes", TESTS | {"pkg/about.py": '__version__ = "1.2"\n'}),
        ("too-large", "Make one() return one at length", TESTS | {"pkg/core.py": "x = 1\n" * 1500}),
        ("too-large", "Test what one() returns at length", SRC | {"tests/test_core.py": "x = 1\n" * 3500}),
        ("too-many-files", "Add a lot of modules", FIX | {f"pkg/m{n}.py": "x = 1\n" for n in range(50)}),
    ],
)
def test_the_first_rule_that_fails_decides(
    expected: str, message: str, files: dict[str, str], tiny: TinyRepo, reason: FindReason
) -> None:
    tiny.commit(message, files)
    assert reason() == expected


@pytest.mark.parametrize(
    ("expected", "message", "files"),
    [
        ("candidate", "perf: make one() twice as fast", SRC),
        ("candidate", "perf: make one() twice as fast", SRC | {"README.md": "It is fast.\n"}),
        ("no-tests", "perf: make one() twice as fast", SRC | {"tests/data.json": "{}\n"}),
        ("no-tests", "perf: make one() twice as fast", SRC | {"tests/test_core.py": None}),
        ("no-tests", "Fix what one() returns when it is in a hurry", SRC),
        ("no-source", "perf: make one() twice as fast", {"README.md": "It is fast.\n"}),
    ],
)
def test_a_performance_change_needs_no_test_change(
    expected: str, message: str, files: dict[str, str | None], tiny: TinyRepo, reason: FindReason, harness: MinerHarness
) -> None:
    tiny.commit(message, files)
    assert reason() == expected
    if expected == "candidate":
        mined = harness.mine(f"git:{tiny.path}")[0]
        assert harness.read_patches(mined)[1] == ""
        assert mined.tags.route == ("performance", "review", "injected", "rebuild")


def test_benchmarks_are_no_tests_and_no_part_of_the_gold_patch(
    tiny: TinyRepo, reason: FindReason, harness: MinerHarness
) -> None:
    benchmark = {"benches/speed.rs": "criterion_main!(benches);\n"}
    tiny.commit("perf: make one() twice as fast", SRC | benchmark)
    assert reason() == "candidate"
    mined = harness.mine(f"git:{tiny.path}")[0]
    gold, tests = harness.read_patches(mined)
    assert ("benches/speed.rs" in gold, "benches/speed.rs" in tests) == (False, True)
    assert mined.tags.route == ("performance", "review", "injected", "rebuild")


def test_a_benchmark_makes_a_change_of_another_kind_no_candidate(tiny: TinyRepo, reason: FindReason) -> None:
    tiny.commit("Fix what one() returns when it is in a hurry", SRC | {"benches/speed.rs": "fn main() {}\n"})
    assert reason() == "no-tests"


@pytest.mark.parametrize("author", ["dependabot[bot] <x@y.z>", "pyup-bot <x@y.z>", "pre-commit-ci[bot] <x@y.z>"])
def test_bots_make_no_candidates(author: str, tiny: TinyRepo, reason: FindReason) -> None:
    tiny.commit("Make one() return one", FIX, author=author)
    assert reason() == "bot"


def test_a_person_with_bot_in_the_name_is_a_person(tiny: TinyRepo, reason: FindReason) -> None:
    tiny.commit("Make one() return one", FIX, author="Bottomley Abbot <x@y.z>")
    assert reason() == "candidate"


def test_a_bots_formatting_commit_does_not_make_the_author_a_bot(tiny: TinyRepo, reason: FindReason) -> None:
    tiny.git("checkout", "-q", "-b", "topic")
    tiny.commit("Make one() return one", FIX)
    tiny.commit("[pre-commit.ci] auto fixes", {"pkg/b.py": "x = 1\n"}, author="pre-commit-ci[bot] <x@y.z>")
    tiny.git("checkout", "-q", "main")
    tiny.git("merge", "-q", "--no-ff", "-m", "Merge pull request #3 from ada/topic\n\nMake one() return one", "topic")
    assert reason() == "candidate"


@pytest.mark.parametrize(
    ("expected", "line"),
    [
        ("version-bump", '__version__ = "1.2"'),
        ("version-bump", "VERSION = (1, 2, 0)  # next"),
        ("version-bump", "version: str = '1.2.dev0'"),
        ("version-bump", "release = '1.2'"),
        ("candidate", "self._version_hash = None"),
        ("candidate", "print(version)"),
        ("candidate", "x = 1.5"),
    ],
)
def test_a_version_is_a_literal_that_is_assigned(expected: str, line: str, tiny: TinyRepo, reason: FindReason) -> None:
    tiny.commit("Get ready for what comes", TESTS | {"pkg/about.py": f"{line}\n"})
    assert reason() == expected


def test_a_folder_named_external_is_source(tiny: TinyRepo, reason: FindReason) -> None:
    tiny.commit("Work with a newer library", TESTS | {"pkg/external/lib.py": "x = 1\n"})
    assert reason() == "candidate"


def test_a_changed_submodule_is_rejected(tiny: TinyRepo, reason: FindReason) -> None:
    head = tiny.git("rev-parse", "HEAD")
    tiny.write(FIX)
    tiny.git("add", "-A")
    tiny.git("update-index", "--add", "--cacheinfo", f"160000,{head},lib")
    tiny.git("commit", "-q", "-m", "Make one() return one with a library")
    assert reason() == "submodule"


def test_the_first_commit_has_no_base(tiny: TinyRepo, harness: MinerHarness) -> None:
    oldest = harness.mine(f"git:{tiny.path}")[-1]
    assert getattr(oldest.result, "reason", "") == "no-base"


def test_limits_are_settings(tiny: TinyRepo, reason: FindReason) -> None:
    tiny.commit("Make one() return one", FIX)
    assert reason(max_gold_lines=1) == "too-large"
    assert reason(max_gold_lines=2, max_test_lines=4, max_files=2) == "candidate"
    assert reason(max_files=1) == "too-many-files"


def test_only_licences_that_are_named_pass(tiny: TinyRepo, reason: FindReason) -> None:
    tiny.commit("Make one() return one", FIX)
    assert reason(licenses=("Apache-2.0", "MIT")) == "candidate"
    assert reason(licenses=("Apache-2.0",)) == "license"


def test_the_licence_is_that_of_the_base(tiny: TinyRepo, harness: MinerHarness) -> None:
    tiny.commit("Make one() return one under no licence", FIX | {"LICENSE": None})
    tiny.commit("Make one() return three", {"pkg/core.py": "x = 3\n", "tests/test_core.py": "x = 3\n"})
    licenses = [getattr(item.result, "license", None) for item in harness.mine(f"git:{tiny.path}")]
    assert licenses[:2] == ["NOASSERTION", "MIT"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"LICENSE": MIT}, "MIT"),
        ({"pyproject.toml": '[project]\nlicense = "MIT OR Apache-2.0"\n', "LICENSE": "?"}, "MIT OR Apache-2.0"),
        ({"pyproject.toml": '[project]\nlicense = {file = "LICENSE"}\n', "LICENSE": MIT}, "MIT"),
        ({"pyproject.toml": "broken = [", "LICENSE": MIT}, "MIT"),
        ({"pyproject.toml": '[project]\nclassifiers = ["License :: OSI Approved :: MIT License"]\n'}, "MIT"),
        ({"setup.py": "setup(classifiers=['License :: OSI Approved :: BSD License'])\n"}, "BSD-3-Clause"),
        ({"setup.cfg": "[metadata]\nclassifiers =\n    License :: OSI Approved :: MIT License\n"}, "MIT"),
        ({"LICENSE.apache": "Apache License\n   Version 2.0, January 2004", "LICENSE.mit": MIT}, "Apache-2.0 AND MIT"),
        ({"setup.py": "LICENSE = 'BSD (3-clause)'\nsetup(license=LICENSE)\n"}, "BSD-3-Clause"),
        ({"setup.cfg": "[metadata]\nlicense = Apache License, Version 2.0\n"}, "Apache-2.0"),
        ({"pyproject.toml": '[tool.poetry]\nlicense = "MIT"\n'}, "MIT"),
        ({"pyproject.toml": '[project]\nlicense = {text = "MIT License"}\n'}, "MIT"),
        ({"setup.py": "setup(license='see LICENSE file')\n"}, "NOASSERTION"),
        ({"LICENSE": "SPDX-License-Identifier: MIT OR Apache-2.0\n\nUse it."}, "MIT OR Apache-2.0"),
        ({"COPYING": GPL, "COPYING.LESSER": LGPL}, "LGPL-3.0-only"),
        ({"COPYING": GPL, "setup.py": f"x = ['{LATER}']\n"}, "GPL-3.0-or-later"),
        ({"LICENSE": MIT + "It incorporates:\n" + PSF}, "MIT"),
        ({"README": "hello"}, "NOASSERTION"),
        ({}, "NOASSERTION"),
    ],
)
def test_the_licence_is_found_in_the_tree(files: dict[str, str], expected: str) -> None:
    assert parse_license_files({name: text for name, text in files.items() if name != "README"}) == expected


def test_the_licence_is_found_in_headers_of_files(tiny: TinyRepo, harness: MinerHarness) -> None:
    tiny.commit("Say it in the files", {"LICENSE": None, "pkg/a.py": f"{HEADER} MIT\n", "pkg/b.py": f"{HEADER} MIT\n"})
    tiny.commit("Make one() return one", FIX | {"pkg/c.py": f"{HEADER} Apache-2.0\n"})
    tiny.commit("Make one() return three", {"pkg/core.py": "x = 3\n", "tests/test_core.py": "x = 3\n"})
    licenses = [getattr(item.result, "license", None) for item in harness.mine(f"git:{tiny.path}", limit=2)]
    assert licenses == ["MIT", "MIT"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GNU GENERAL PUBLIC LICENSE\n    Version 3, 29 June 2007", "GPL-3.0-only"),
        ("GNU LESSER GENERAL PUBLIC LICENSE\n Version 3, 29 June 2007", "LGPL-3.0-only"),
        ("Mozilla Public License Version 2.0", "MPL-2.0"),
        ("Redistributions of source code must retain the above.\n Neither the name of X", "BSD-3-Clause"),
        ("Redistributions of source code must retain the above.", "BSD-2-Clause"),
        ("All rights reserved.", None),
    ],
)
def test_a_licence_text_is_identified(text: str, expected: str | None) -> None:
    assert identify(text) == expected


def test_one_allowed_alternative_is_enough() -> None:
    assert is_allowed("MIT OR GPL-3.0-only", ("MIT",))
    assert not is_allowed("MIT AND GPL-3.0-only", ("MIT",))
    assert not is_allowed("(MIT OR GPL-3.0-only) AND BSD-3-Clause", ("MIT", "BSD-3-Clause"))
    assert not is_allowed("NOASSERTION", ("MIT",))


def test_the_language_is_that_of_most_files() -> None:
    assert detect_language(("a.rs", "b.rs", "c.py")) == "rust"
    assert detect_language(("a.rs", "c.py")) == "python"
    assert detect_language(("README",)) == ""


def test_a_reason_and_its_input_name_one_rule() -> None:
    assert len({(rule.reason, rule.needs) for rule in RULES}) == len(RULES)


def test_the_documented_table_lists_the_complete_policy_in_its_order() -> None:
    text = (Path(__file__).parents[2] / "docs/guide/mine/rules.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `([\w-]+)` \| (\w+) \| (yes|no) \|", text, re.MULTILINE)
    rows = [(rule.reason.value, rule.needs.value, "yes" if rule.applies_to_published else "no") for rule in RULES]
    assert documented == rows


def test_every_reason_has_a_rule() -> None:
    # A row of a published set waits for its clone before any rule sees it.
    assert {rule.reason for rule in RULES} == set(Reason) - {Reason.AWAITS_CLONE}
