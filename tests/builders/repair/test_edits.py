from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from pydantic import ValidationError

from builders.repair.edit_application import apply_edit
from builders.repair.edit_checks import RejectedEditError
from builders.repair.edits import (
    AGENT_ORIGIN,
    AddDependency,
    build_edit_schema,
    dump_edit,
    format_edit,
    format_skill_origin,
    parse_edit,
    parse_edits,
)
from languages.draft import Dependency, PlanDraft, Role
from languages.facts import SourcedValue
from languages.python import render_plan
from taskdb.records import Evidence, TestCommand

DRAFT = PlanDraft(
    language="python",
    name="greet",
    day=date(2024, 3, 17),
    exclude_newer=date(2024, 3, 1),
    versions=(Evidence(choice="language_version", value="3.11", path="tox.ini", line=3),),
    dependencies=(
        Dependency(role=Role.RUNTIME, source=SourcedValue(text="Attrs>=22", path="setup.py", line=1)),
        Dependency(role=Role.OPTIONAL, source=SourcedValue(text="mock", path="tests/test_a.py", line=1)),
    ),
    test=TestCommand(framework="pytest", argv=("pytest", "-o", "addopts=--strict"), paths=("tests",)),
    env=(("LANG", "C.UTF-8"),),
)


def edited(**data: Any) -> PlanDraft:
    return apply_edit(DRAFT, parse_edit(data), AGENT_ORIGIN)


def test_an_edit_records_its_origin_in_the_plans_evidence() -> None:
    draft = apply_edit(
        DRAFT, parse_edit({"edit": "add-system-package", "name": "libffi-dev"}), format_skill_origin("header-ffi")
    )
    plan = render_plan(draft)
    assert plan.system_packages == ("libffi-dev",)
    assert [e.path for e in plan.evidence if e.value == "libffi-dev"] == ["(skill header-ffi)"]
    again = apply_edit(draft, parse_edit({"edit": "add-system-package", "name": "libffi-dev"}), AGENT_ORIGIN)
    assert again == draft


@pytest.mark.parametrize(
    ("data", "is_applied"),
    [
        ({"edit": "add-dependency", "requirement": "six"}, lambda d: "six" in {x.source.text for x in d.dependencies}),
        ({"edit": "add-dependency", "requirement": "mock"}, lambda d: d.dependencies[-1].role is Role.TEST),
        ({"edit": "remove-dependency", "name": "attrs"}, lambda d: [x.source.text for x in d.dependencies] == ["mock"]),
        (
            {"edit": "relax-dependency", "requirement": "Attrs>=22"},
            lambda d: {x.source.text for x in d.dependencies} == {"Attrs", "mock"},
        ),
        (
            {"edit": "pin-dependency", "requirement": "attrs<23"},
            lambda d: [(x.source.text, x.role) for x in d.dependencies][-1] == ("attrs<23", Role.RUNTIME),
        ),
        (
            {"edit": "set-language-version", "version": "3.9"},
            lambda d: [v.value for v in d.versions] == ["3.9", "3.11"],
        ),
        ({"edit": "set-exclude-newer", "day": "2024-06-01"}, lambda d: d.exclude_newer == date(2024, 6, 1)),
        ({"edit": "set-env", "name": "LANG", "value": "C"}, lambda d: d.env == (("LANG", "C"),)),
        ({"edit": "unset-env", "name": "LANG"}, lambda d: d.env == ()),
        ({"edit": "set-switch", "name": "packaged"}, lambda d: d.switches == {"packaged"}),
        (
            {"edit": "add-dependency-step", "command": "make -C /opt/x"},
            lambda d: d.dependency_steps == ("make -C /opt/x",),
        ),
        ({"edit": "add-source-step", "command": "make gen"}, lambda d: d.source_steps == ("make gen",)),
        ({"edit": "set-test-paths", "paths": ["a", "b"]}, lambda d: d.test.paths == ("a", "b")),
        (
            {"edit": "set-test-options", "add": ["-o", "asyncio_mode=auto"]},
            lambda d: d.test.argv[-1] == "asyncio_mode=auto",
        ),
        ({"edit": "set-test-options", "add": ["--import-mode=importlib"]}, lambda d: d.test.argv[0] == "pytest"),
        ({"edit": "set-test-folder", "folder": "py/"}, lambda d: d.test.folder == "py"),
        ({"edit": "add-service", "name": "redis"}, lambda d: [w.text for w in d.system_packages] == ["redis-server"]),
        ({"edit": "fallback", "name": "use_exact_date"}, lambda d: d.exclude_newer > DRAFT.exclude_newer),
    ],
)
def test_each_edit_changes_its_choice(data: dict[str, Any], is_applied: Any) -> None:
    draft = edited(**data)
    assert is_applied(draft)
    assert draft != DRAFT
    assert AGENT_ORIGIN in {e.path for e in render_plan(draft).evidence} or data["edit"] == "unset-env"


def test_a_requirement_that_another_one_names_is_given_up_as_a_whole() -> None:
    second = Dependency(role=Role.TEST, source=SourcedValue(text="attrs[tests]==20.1", path="ci.txt", line=4))
    draft = replace(DRAFT, dependencies=(*DRAFT.dependencies, second))
    relaxed = apply_edit(
        draft, parse_edit({"edit": "relax-dependency", "requirement": "attrs[tests]==20.1"}), "(conflict)"
    )
    assert relaxed.dependencies == DRAFT.dependencies
    assert [(e.value, e.path) for e in relaxed.evidence] == [("attrs[tests]==20.1", "(conflict)")]


@pytest.mark.parametrize(
    "data",
    [
        {"edit": "add-dependency", "requirement": "six @ https://example.org/six.whl"},
        {"edit": "add-dependency", "requirement": "six; rm -rf /"},
        {"edit": "set-language-version", "version": "2.7"},
        {"edit": "set-exclude-newer", "day": "2026-01-01"},
        {"edit": "set-env", "name": "PYTEST_ADDOPTS", "value": "-k nothing"},
        {"edit": "set-env", "name": "LD_PRELOAD", "value": "/tmp/a.so"},
        {"edit": "set-env", "name": "NODE_OPTIONS", "value": "--require ./fake.js"},
        {"edit": "set-switch", "name": "magic"},
        {"edit": "add-source-step", "command": "pip install . || true"},
        {"edit": "add-source-step", "command": "make; exit 0"},
        {"edit": "add-source-step", "command": "rm -rf tests/test_hard.py"},
        {"edit": "add-source-step", "command": "sed -i s/assert/pass/ tests/test_a.py"},
        {"edit": "add-source-step", "command": "echo 'def pytest_runtest_makereport(): ...' > conftest.py"},
        {"edit": "add-dependency-step", "command": "cp fake.py /opt/venv/lib/python3.11/site-packages/_pytest/main.py"},
        {"edit": "add-dependency-step", "command": "printf x > /opt/venv/bin/pytest"},
        {"edit": "set-test-paths", "paths": ["../elsewhere"]},
        {"edit": "set-test-paths", "paths": ["--deselect=tests/test_a.py"]},
        {"edit": "set-test-options", "add": ["-k", "not hard"]},
        {"edit": "set-test-options", "add": ["--ignore=tests/test_hard.py"]},
        {"edit": "set-test-options", "add": ["-x"]},
        {"edit": "set-test-options", "add": ["--deselect", "tests/test_hard.py::test_it"]},
        {"edit": "set-test-options", "add": ["--co"]},
        {"edit": "set-test-options", "add": ["-p", "fake_reports"]},
        {"edit": "set-test-options", "add": ["-o", "python_files=easy_*.py"]},
        {"edit": "set-test-options", "add": ["tests/test_easy.py"]},
        {"edit": "set-test-options", "remove": ["pytest"]},
        {"edit": "set-test-folder", "folder": "/tmp"},
        {"edit": "add-service", "name": "oracle"},
        {"edit": "fallback", "name": "give_up"},
    ],
    ids=lambda data: " ".join(str(value) for value in data.values())[:60],
)
def test_an_edit_that_is_invalid_or_hides_failures_is_rejected_with_a_reason(data: dict[str, Any]) -> None:
    with pytest.raises(RejectedEditError, match=r"\w+ \w+"):
        edited(**data)


def test_edits_round_trip_through_plain_data() -> None:
    data = [{"edit": "set-env", "name": "A", "value": "1"}, {"edit": "add-service", "name": "redis"}]
    edits = parse_edits(data)
    assert [dump_edit(edit) for edit in edits] == data
    assert format_edit(edits[0]) == "set-env A=1"
    with pytest.raises(ValidationError):
        parse_edit({"edit": "write-dockerfile", "text": "FROM scratch"})
    assert "oneOf" in build_edit_schema()
    with pytest.raises(ValidationError):
        parse_edit({"edit": "add-system-package", "name": "x; rm -rf /"})


def test_package_names_are_compared_in_canonical_form() -> None:
    draft = replace(DRAFT, language="python")
    assert apply_edit(draft, AddDependency(requirement="ATTRS"), AGENT_ORIGIN) == draft
