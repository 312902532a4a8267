"""Of a monorepo that cannot be installed as a whole, the packages that the change touches and what they depend on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from builders.acceptance import BuildRejection, Reason
from builders.repair.edit_application import apply_edit
from builders.repair.edits import UseFallback
from builders.repair.loop import check_draft
from builders.repair.observation import build_observation
from builders.repair.policy import Proposal, ProposalOutcome, RepairCase, RepairUsage
from builders.repair.rules import RulePolicy
from languages.base import NARROWING
from languages.draft import PlanDraft, PlanningContext
from languages.registry import get_language
from languages.source_tree import SourceTree
from tests.languages.trees import build_tree


def make_package(name: str, *, scripts: dict[str, str] | None = None, **dependencies: str) -> str:
    needed = {f"@x/{dependency}": version for dependency, version in dependencies.items()}
    return json.dumps(
        {
            "name": f"@x/{name}",
            "scripts": scripts or {},
            "dependencies": needed,
            "devDependencies": {"vitest": "1.0.0"},
        }
    )


NODE = {
    "package.json": json.dumps(
        {"private": True, "scripts": {"test": "vitest run", "build": "tsc -b"}, "devDependencies": {"vitest": "1.0.0"}}
    ),
    "pnpm-workspace.yaml": "packages: ['packages/*']\n",
    ".github/workflows/ci.yml": "on: push\njobs:\n  test:\n    steps:\n"
    "      - run: pnpm build\n      - run: pnpm test\n",
    "packages/app/package.json": make_package("app", core="workspace:*"),
    "packages/app/test/a.test.js": "import {it} from 'vitest';\nit('adds', () => {});\n",
    "packages/core/package.json": make_package("core", scripts={"build": "tsc"}, base="workspace:*"),
    "packages/core/test/c.test.js": "import {it} from 'vitest';\nit('parses', () => {});\n",
    "packages/base/package.json": make_package("base", scripts={"build": "tsc"}),
    "packages/heavy/package.json": make_package("heavy", app="workspace:*"),
    "packages/heavy/test/h.test.js": "import {it} from 'vitest';\nit('works', () => {});\n",
}
CARGO = '[package]\nname = "{}"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n{}'
RUST = {
    "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\n',
    "Cargo.lock": "version = 3\n",
    ".github/workflows/ci.yml": "on: push\njobs:\n  test:\n    steps:\n"
    "      - run: cargo test --workspace --exclude app_x --all-features\n",
    "crates/core/Cargo.toml": CARGO.format("core_x", ""),
    "crates/core/src/lib.rs": "",
    "crates/core/tests/c.rs": "#[test]\nfn c() {}\n",
    "crates/app/Cargo.toml": CARGO.format("app_x", 'core_x = { path = "../core" }\n'),
    "crates/app/src/lib.rs": "",
    "crates/app/tests/a.rs": "#[test]\nfn a() {}\n",
}
GO = {
    "go.work": "go 1.21\n\nuse (\n\t./core\n\t./app\n\t./heavy\n)\n",
    "core/go.mod": "module example.org/core\n\ngo 1.21\n",
    "core/core.go": "package core\n",
    "app/go.mod": "module example.org/app\n\ngo 1.20\n\nrequire example.org/core v0.0.0\n",
    "app/app_test.go": 'package app\n\nimport "testing"\n\nfunc TestSum(t *testing.T) {}\n',
    "heavy/go.mod": "module example.org/heavy\n\ngo 1.22\n\nrequire example.org/app v0.0.0\n",
}


def narrow(tree: SourceTree, language: str, changed: Sequence[str]) -> tuple[PlanDraft, PlanDraft]:
    """Return the first draft and the one for the packages of the change."""
    module = get_language(language)
    releases = [release.version for release in module.releases]
    context = PlanningContext(list_available=lambda: releases, day=date(2024, 3, 1), changed_paths=tuple(changed))
    first = module.create_draft(tree, context)
    return first, apply_edit(first, UseFallback(name=NARROWING), "(fallback)")


def test_members_of_a_node_workspace(tmp_path: Path) -> None:
    tree = build_tree(tmp_path, NODE)
    first, draft = narrow(tree, "javascript", ["packages/app/index.js", "packages/app/test/a.test.js"])
    plan = get_language("javascript").render_plan(draft)
    manifests = [path for path, _ in plan.manifests]
    assert "packages/heavy/package.json" in [path for path, _ in first.manifests]
    assert "packages/heavy/package.json" not in manifests
    assert {"packages/app/package.json", "packages/core/package.json", "packages/base/package.json"} <= set(manifests)
    builds = [step for step in plan.source_steps if "run --offline build" in step]
    assert ["packages/base" in builds[0], "packages/core" in builds[1], len(builds)] == [True, True, 2]
    files = get_language("javascript").find_test_files(tree, plan)
    assert "packages/app/test/a.test.js" in files
    assert "packages/heavy/test/h.test.js" not in files


def test_packages_of_a_cargo_workspace(tmp_path: Path) -> None:
    tree = build_tree(tmp_path, RUST)
    _, draft = narrow(tree, "rust", ["crates/core/src/lib.rs", "crates/core/tests/c.rs"])
    assert draft.test.argv == ("cargo", "test", "--all-features", "-p", "core_x")
    assert get_language("rust").find_test_files(tree, get_language("rust").render_plan(draft)) == [
        "crates/core/tests/c.rs"
    ]


def test_modules_of_a_go_workspace(tmp_path: Path) -> None:
    tree = build_tree(tmp_path, GO)
    _, draft = narrow(tree, "go", ["app/app.go", "app/app_test.go"])
    plan = get_language("go").render_plan(draft)
    assert dict(plan.env)["GOWORK"] == "/opt/go/own.work"
    assert "'go 1.21' 'use \"/testbed/app\"' 'use \"/testbed/core\"' > /opt/go/own.work" in plan.dependency_steps[0]


@pytest.mark.parametrize(
    ("language", "files", "changed"),
    [
        ("javascript", NODE, ["package.json", "scripts/a.js"]),
        ("javascript", {name: text for name, text in NODE.items() if "workspace" not in name}, ["packages/app/a.js"]),
        ("rust", RUST, ["crates/app/src/lib.rs", "crates/core/src/lib.rs"]),
        ("go", {name: text for name, text in GO.items() if name != "go.work"}, ["app/app.go"]),
    ],
    ids=["no member is touched", "no workspace", "all members are touched", "no go.work"],
)
def test_what_cannot_be_narrowed_stays(
    tmp_path: Path, language: str, files: dict[str, str], changed: list[str]
) -> None:
    first, draft = narrow(build_tree(tmp_path, files), language, changed)
    assert draft == first


def test_a_narrowed_draft_may_leave_out_the_tests_of_other_packages(tmp_path: Path) -> None:
    tree = build_tree(tmp_path, NODE)
    own = ["packages/app/test/a.test.js"]
    first, draft = narrow(tree, "javascript", ["packages/app/index.js", *own])
    candidate = SimpleNamespace(test_files=own)
    case = cast("RepairCase", SimpleNamespace(first_draft=first, tree=tree, candidate=candidate, services=None))
    assert check_draft(case, draft) == ""
    fewer = draft.test.model_copy(update={"paths": ("packages/core",)})
    assert "would not run" in check_draft(case, draft.__class__(**{**vars(draft), "test": fewer}))


@pytest.mark.parametrize(
    ("reason", "is_narrowed"), [(Reason.DEPENDENCIES_FAILED, True), (Reason.GOLD_TESTS_FAIL, False)]
)
def test_a_build_that_is_accepted_is_not_narrowed(tmp_path: Path, reason: Reason, is_narrowed: bool) -> None:
    first, _ = narrow(build_tree(tmp_path, NODE), "javascript", ["packages/app/index.js"])
    plan = get_language("javascript").render_plan(first)
    rejection = BuildRejection(reason=reason, detail="", log="")
    observation = build_observation(first, plan, rejection, attempt=1, usage=RepairUsage())
    policy = RulePolicy(cast("RepairCase", SimpleNamespace(tree=None)), ())
    history: list[ProposalOutcome] = []
    while isinstance(proposal := policy.propose(observation, history), Proposal):
        history.append(
            ProposalOutcome(
                number=2, proposal=proposal, draft=first, reason=reason, detail="", rolled_back=True, seconds=0
            )
        )
    edits = [edit for outcome in history for edit in outcome.proposal.edits]
    assert len(edits) > 1
    assert (UseFallback(name=NARROWING) in edits) == is_narrowed
