"""Handmade tasks on a tiny repository: one bug, its tests, a script, and optionally an image."""

from __future__ import annotations

import json
from pathlib import Path

from backends.services import Services
from evaluation.script.render import render_script
from guest.controls.blind import compute_bound, compute_worst_bound
from taskdb.records import BuildPlan, Certificate, FailureKind, Kind, Task, TestCommand
from tests.containers import make_environment_image
from tests.helpers import TinyRepo

WORDS = "def count(words):\n    return len(words.split(' '))\n"
WORDS_RIGHT = WORDS.replace("split(' ')", "split()")
TEST = "from words import count\n\n\ndef test_two():\n    assert count('a b') == 2\n"
TEST_WIDE = (
    TEST
    + """

import pytest


@pytest.mark.parametrize("text", ["a   b", " a b", "- a"])
def test_wide_gaps(text):
    assert count(text) == 2


@pytest.mark.xfail
def test_not_yet():
    assert count(None) == 0
"""
)
FAIL_TO_PASS = ("tests/test_words.py::test_wide_gaps[a   b]", "tests/test_words.py::test_wide_gaps[ a b]")
PASS_TO_PASS = ("tests/test_words.py::test_two", "tests/test_words.py::test_wide_gaps[- a]")
WIDE_GAPS = TEST_WIDE.index("test_wide_gaps")
CONTROLS = {
    "evaluations": 6,
    "copies": 0,
    "partial": True,
    "files": {"tests/test_words.py": TEST_WIDE},
    "blocks": [
        {
            "file": "tests/test_words.py",
            "span": [TEST_WIDE.index("@pytest.mark.parametrize"), TEST_WIDE.index("\n\n\n@pytest.mark.xfail")],
            "name": [WIDE_GAPS, WIDE_GAPS + len("test_wide_gaps")],
            "blind": True,
            "required": True,
            "tests": [*FAIL_TO_PASS, PASS_TO_PASS[1]],
            "menus": [[[0, 4]]],
            "sites": [
                {
                    "spans": [[TEST_WIDE.rindex("2"), TEST_WIDE.rindex("2") + 1]],
                    "values": [
                        {"text": text, "fails": dict.fromkeys((*FAIL_TO_PASS, PASS_TO_PASS[1]), "assertion")}
                        for text in "345"
                    ],
                }
            ],
        }
    ],
}
BASE = {"words.py": WORDS, "tests/test_words.py": TEST, "README.md": "# words\n", "run.sh": "#!/bin/sh\n"}
PLAN = BuildPlan(
    language="python",
    language_version="3.11",
    exclude_newer="2024-03-01",
    system_packages=(),
    dependency_steps=('uv venv --quiet --python "$MERGEMILL_PYTHON" /opt/venv',),
    source_steps=(),
    test=TestCommand(framework="pytest", argv=("python", "-m", "pytest", "-p", "no:cacheprovider")),
    env=(("GREETING", 'say "$5"'),),
)


def make_task(
    services: Services,
    folder: Path,
    *,
    image: str = "mergemill/env:words",
    name: str = "ada__words-1",
    evaluations: int = 6,
) -> Task:
    """Return a bugfix task of a new repository in `folder` / `name`."""
    controls = CONTROLS | {"evaluations": evaluations}
    repo = TinyRepo(folder / name)
    base = repo.commit("Begin", BASE)
    gold = _patch(repo, {"words.py": WORDS_RIGHT})
    test = _patch(repo, {"tests/test_words.py": TEST_WIDE})
    script = render_script(
        PLAN.test,
        workdir="/testbed",
        test_patch=test,
        files=["tests/test_words.py"],
        env=PLAN.env,
        canaries_beside=["tests/test_words.py"],
    )
    put = services.artifacts.put
    return Task(
        parent="0" * 64,
        candidate="1" * 64,
        source=f"git:{repo.path}",
        name=f"{name}.bugfix",
        kind=Kind.BUGFIX,
        repo="ada/words",
        language="python",
        language_version="3.11",
        version="1.0",
        base_commit=base,
        created_at="2024-03-01T12:00:00Z",
        license="MIT",
        problem_statement="# Wide gaps are miscounted\n\ncount('a   b') gives 4 \u2028 instead of 2.",
        hints="",
        gold_patch=put(gold),
        test_patch=put(test),
        control_patch=None,
        blind_controls=put(json.dumps(controls).encode()),
        control_bound=compute_bound(controls),
        worst_block_bound=compute_worst_bound(controls, FAIL_TO_PASS),
        evaluations=evaluations,
        FAIL_TO_PASS=tuple((test_id, FailureKind.ASSERTION) for test_id in FAIL_TO_PASS),
        PASS_TO_PASS=PASS_TO_PASS,
        controls=FAIL_TO_PASS,
        eval_script=put(script.encode()),
        plan=PLAN,
        image=image,
        image_digest="sha256:" + "2" * 64,
        test_seconds=0.5,
    )


def make_task_with_image(services: Services, folder: Path, *, name: str = "ada__words-1", evaluations: int = 6) -> Task:
    """Return the same task with an image in the engine.

    Two evaluations are enough for submissions that do not forge results. A forged one may pass so few by chance.
    """
    image = make_environment_image(services, BASE)
    return make_task(services, folder, image=image, name=name, evaluations=evaluations)


def make_certificate(task: Task) -> Certificate:
    """Return a certificate of the task."""
    return Certificate(
        parent=task.id, name=task.name, gold=(1.0, 1.0, 1.0), noop=0.0, image_digest=task.image_digest, seconds=1.0
    )


def _patch(repo: TinyRepo, files: dict[str, str]) -> bytes:
    """Return the patch that changes these files, without changing the work tree."""
    repo.write(files)
    patch = repo.git("diff", "--binary") + "\n"
    repo.git("checkout", "-q", "--", ".")
    return patch.encode()
