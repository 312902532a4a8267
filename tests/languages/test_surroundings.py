"""Time zone, language and terminal that a project sets for its tests."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from languages.draft import PlanDraft
from languages.surroundings import add_surroundings, read_settings
from taskdb.records import Evidence, TestCommand
from tests.languages.trees import build_tree

WORKFLOW = """on: push
jobs:
  lint:
    env: {{TZ: Asia/Tokyo}}
    steps: [{{run: ruff check}}]
  test:
    env:
      TZ: America/New_York
      LC_ALL: nl_NL.UTF-8
      SECRET: x
    steps:
      - run: {line}
"""
TOX = "[testenv]\nsetenv =\n    COLUMNS = 132\n    PYTHONPATH = {toxinidir}\ncommands = pytest\n"


def make_draft() -> PlanDraft:
    return PlanDraft(
        language="python",
        name="greet",
        day=date(2024, 3, 17),
        exclude_newer=date(2024, 3, 1),
        versions=(Evidence(choice="language_version", value="3.11", path="(date)", line=0),),
        env=(("LANG", "C.UTF-8"), ("TZ", "UTC")),
        test=TestCommand(framework="pytest", argv=("pytest",)),
    )


def list_settings(tmp_path: Path, files: dict[str, str]) -> list[tuple[str, str, str, int]]:
    return [
        (setting.name, setting.value, setting.path, setting.line)
        for setting in read_settings(build_tree(tmp_path, files))
    ]


def test_the_first_job_with_tests_decides(tmp_path: Path) -> None:
    path = ".github/workflows/ci.yml"
    assert list_settings(tmp_path, {path: WORKFLOW.format(line="pytest")}) == [
        ("TZ", "America/New_York", path, 4),
        ("LC_ALL", "nl_NL.UTF-8", path, 9),
    ]


def test_tox_keeps_the_variables_of_ci_from_the_tests(tmp_path: Path) -> None:
    files = {".github/workflows/ci.yml": WORKFLOW.format(line="tox"), "tox.ini": TOX}
    assert list_settings(tmp_path, files) == [("COLUMNS", "132", "tox.ini", 3)]
    passed = files | {"tox.ini": TOX + "passenv = TZ\n"}
    assert [setting[0] for setting in list_settings(tmp_path / "passed", passed)] == ["COLUMNS", "TZ"]


@pytest.mark.parametrize(
    ("line", "setting"),
    [
        ("TZ=Asia/Tokyo pytest", ("TZ", "Asia/Tokyo")),
        ("export LINES=50 && npm test", ("LINES", "50")),
        ("sudo timedatectl set-timezone Europe/Berlin", ("TZ", "Europe/Berlin")),
        ("sudo ln -sf /usr/share/zoneinfo/US/Eastern /etc/localtime", ("TZ", "US/Eastern")),
        ("sudo locale-gen de_DE.UTF-8", ("", "de_DE.UTF-8")),
    ],
)
def test_lines_of_ci_set_variables(tmp_path: Path, line: str, setting: tuple[str, str]) -> None:
    workflow = f"on: push\njobs:\n  test:\n    steps:\n      - run: {line}\n      - run: pytest\n"
    assert [entry[:2] for entry in list_settings(tmp_path, {".github/workflows/ci.yml": workflow})] == [setting]


def test_nox_sets_variables(tmp_path: Path) -> None:
    text = '@nox.session\ndef tests(session):\n    session.env["TZ"] = "Asia/Tokyo"\n    session.run("pytest")\n'
    assert list_settings(tmp_path, {"noxfile.py": text}) == [("TZ", "Asia/Tokyo", "noxfile.py", 3)]


def test_settings_replace_the_common_ones_and_locales_are_generated(tmp_path: Path) -> None:
    path = ".github/workflows/ci.yml"
    draft = add_surroundings(make_draft(), build_tree(tmp_path, {path: WORKFLOW.format(line="pytest")}))
    assert dict(draft.env) == {"LANG": "C.UTF-8", "TZ": "America/New_York", "LC_ALL": "nl_NL.UTF-8"}
    assert len(draft.env) == 3
    assert [
        (system_package.text, system_package.path, system_package.line) for system_package in draft.system_packages
    ] == [("locales", path, 9)]
    assert "localedef -i nl_NL -f UTF-8 nl_NL.UTF-8" in draft.dependency_steps[0]
    assert {(evidence.choice, evidence.value, evidence.line) for evidence in draft.evidence} == {
        ("env", "TZ=America/New_York", 4),
        ("env", "LC_ALL=nl_NL.UTF-8", 9),
    }


def test_a_project_that_sets_nothing_keeps_its_draft(tmp_path: Path) -> None:
    tree = build_tree(tmp_path, {"tox.ini": "[testenv]\nsetenv = LANG=C.UTF-8\ncommands = pytest\n"})
    assert add_surroundings(make_draft(), tree) == make_draft()
