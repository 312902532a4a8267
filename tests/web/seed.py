"""A database as a few repositories would fill it: tasks, rejections, attempts, verdicts, scores, a run, a rollout."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.config import Settings
from mergemill.bench.sets import freeze
from taskdb.artifacts import Artifacts
from taskdb.records import (
    Attempt,
    BuildPlan,
    Counts,
    Evidence,
    FailureKind,
    FlakyTest,
    Kind,
    RunVariant,
    Score,
    Stage,
    Task,
    TestCommand,
    TestOrigin,
    TestRun,
)
from taskdb.records.audits import Audit
from taskdb.records.verdicts import Completion, Finding, QuoteSource
from taskdb.records.work import StageResult
from taskdb.store import Store
from tests import records
from tests.mergemill.bench import making

BENCH = "review-and-repair"
REPOSITORIES = (
    ("ada/greet", "python", "MIT"),
    ("pallets/flask", "python", "BSD-3-Clause"),
    ("spf13/cobra", "go", "Apache-2.0"),
    ("expressjs/express", "javascript", "MIT"),
)
REJECTIONS = (
    (Stage.MINE, "no-tests", "the change has no test"),
    (Stage.MINE, "no-tests", "the change has no test"),
    (Stage.MINE, "too-large", "2,311 changed lines, at most 1,000"),
    (Stage.BUILD, "tests-not-collected", "pytest collected 0 of 14 files"),
    (Stage.VERIFY, "no-fail-to-pass", "every test has the same status in both runs"),
)
TITLES = (
    "Keep the subject when a greeting is empty",
    "Fix slug of names with accents",
    "Close the response when streaming fails",
    "Report the flag that is missing",
    "Do not swallow KeyboardInterrupt in the worker",
    "Sort routes before they are matched",
)
STATEMENT = """## Expected behaviour

Calling `greet("")` should return **"Hello, friend!"** and must not raise.
Today the name is stripped first, and an empty name ends in an `IndexError`.

```python
>>> greet("")
Traceback (most recent call last):
  File "greet.py", line 7, in greet
    first = name.strip()[0]
IndexError: string index out of range
```

| input | result |
|---|---|
| `"Ada"` | Hello, Ada! |
| `""` | Hello, friend! |

See the [discussion](https://example.org/discuss/12) and the screenshot ![screen](https://example.org/screen.png).
Names with only blanks are treated like empty ones.
"""
GOLD_PATCH = '''diff --git a/greet.py b/greet.py
index 1111111..2222222 100644
--- a/greet.py
+++ b/greet.py
@@ -1,12 +1,17 @@
 """Greetings."""

 import re

+DEFAULT_NAME = "friend"
+

 def greet(name: str, *, excited: bool = True) -> str:
-    first = name.strip()[0]
-    return f"Hello, {first.upper()}{name[1:]}!"
+    """Return a greeting; an empty name greets a friend."""
+    cleaned = re.sub(r"\\s+", " ", name).strip()
+    if not cleaned:
+        cleaned = DEFAULT_NAME  # nothing to greet
+    return f"Hello, {cleaned[0].upper()}{cleaned[1:]}{'!' if excited else '.'}"


 def part(name: str) -> str:
     return f"Bye, {name}."
'''
TEST_PATCH = """diff --git a/tests/test_greet.py b/tests/test_greet.py
index 3333333..4444444 100644
--- a/tests/test_greet.py
+++ b/tests/test_greet.py
@@ -1,6 +1,16 @@
+import pytest
+
 from greet import greet, part


 def test_old() -> None:
     assert greet("ada") == "Hello, Ada!"
+
+
+@pytest.mark.parametrize("name", ["", "   "])
+def test_new(name: str) -> None:
+    assert greet(name) == "Hello, Friend!"
+
+
+def test_calm() -> None:
+    assert greet("ada", excited=False) == "Hello, Ada."
"""
LOG = "\x1b[31m2 failed\x1b[0m, 14 passed in 3.21s\n" + "\n".join(f"tests/test_{n}.py ....  [{n}%]" for n in range(40))


@dataclass(frozen=True)
class SeededDatabase:
    """Settings of a seeded database, and names in it."""

    settings: Settings
    task: str
    change: str
    rejected: str
    rollout: str
    artifact: str
    bench: str = ""
    """Name of a frozen set with two runs; empty where there is none."""


@dataclass(frozen=True)
class ForeignTexts:
    """Every text of a change that a repository brings. Tests put hostile strings here."""

    name: str
    title: str
    statement: str
    patch: str
    test_patch: str
    test: str
    quote: str
    log: str
    repo: str = "ada/greet"
    hints: str = ""
    author: str = "Ada"
    language: str = "python"
    license: str = "MIT"


def make_texts(number: int) -> ForeignTexts:
    repo, language, license_ = REPOSITORIES[number % len(REPOSITORIES)]
    return ForeignTexts(
        name=f"{repo.replace('/', '__')}-{number}",
        title=TITLES[number % len(TITLES)],
        statement=STATEMENT,
        patch=GOLD_PATCH,
        test_patch=TEST_PATCH,
        test="tests/test_greet.py::test_new[empty]",
        quote="must not raise",
        log=LOG,
        repo=repo,
        language=language,
        license=license_,
    )


def seed_database(folder: Path, n_tasks: int = 60) -> SeededDatabase:
    """Fill a database in a folder, with its store, and return what is in it."""
    settings = Settings(db=f"sqlite:///{folder}/mergemill.db", store=folder / "mergemill-store")
    artifacts = Artifacts(settings.storage.store_dir / "artifacts")
    kinds = (Kind.BUGFIX, Kind.FEATURE, Kind.BUGFIX, Kind.PERFORMANCE, Kind.REVIEW)
    with Store.open(settings.storage.db) as store:
        for number in range(1, n_tasks + 1):
            kind = kinds[number % len(kinds)]
            certified = number % 6 != 0
            add_change(store, artifacts, number, make_texts(number), kind=kind, certified=certified)
        for number, (stage, reason, detail) in enumerate(REJECTIONS * 3, start=1000):
            add_rejected_change(store, artifacts, number, stage, reason, detail)
    texts = make_texts(5)
    task = f"{texts.name}.bugfix"
    add_rollout(settings.storage.store_dir / "rollouts", "r-1", task)
    add_run(settings.storage.store_dir / "runs")
    artifact = artifacts.put(LOG.encode())
    return SeededDatabase(settings, task, texts.name, "ada__greet-1003", "r-1", artifact, add_bench(settings))


def add_bench(settings: Settings) -> str:
    """Add a held-out set of fifteen tasks with two runs on it, of which one lacks a rollout; return its name."""
    with Store.open(settings.storage.db) as store:
        tasks = sorted(store.load_all(Task), key=lambda task: task.name)[:15]
        bench_set = freeze(store, BENCH, tasks, making.LIMITS, held_out=True)
    skills = {"qwen3-coder": 3, "qwen3-coder-rl": 2}
    for model, divisor in skills.items():

        def solve(number: int, attempt: int, divisor: int = divisor) -> float | None:
            return None if (number, attempt, divisor) == (4, 2, 3) else float((number + attempt) % divisor == 0)

        url = settings.storage.db
        making.add_run(
            Path(), bench_set, tasks, solve, runs=2, url=url, model=model, checkpoint="step-200", agent_seconds=84.0
        )
    return BENCH


def add_change(
    store: Store,
    artifacts: Artifacts,
    number: int,
    texts: ForeignTexts,
    *,
    kind: Kind = Kind.BUGFIX,
    certified: bool = True,
    tests: TestOrigin = TestOrigin.HUMAN,
) -> str:
    """Add a change with all its records and return its task's name."""
    at = f"2024-{number % 12 + 1:02d}-{number % 28 + 1:02d}T12:{number % 60:02d}:00+00:00"
    pull = records.make_pull_request(
        number, source=f"github:{texts.repo}", repo=texts.repo, name=texts.name, title=texts.title,
        body=texts.statement, author=texts.author, merged_at=at,
    )  # fmt: skip
    candidate = records.make_candidate(
        pull,
        problem_statement=texts.statement,
        hints=texts.hints,
        language=texts.language,
        license=texts.license,
        tests=tests,
        gold_patch=artifacts.put_text(texts.patch),
        test_patch=artifacts.put_text(texts.test_patch),
    )
    log = artifacts.put_text(texts.log)
    environment = records.make_environment(
        candidate, plan=make_plan(texts), log=log, attempt=2, attempts=make_attempts(texts), image_bytes=48_000_000
    )
    verification = records.make_verification(
        environment,
        FAIL_TO_PASS=((texts.test, FailureKind.ASSERTION), ("tests/test_greet.py::test_calm", FailureKind.ERROR)),
        PASS_TO_PASS=tuple(f"tests/test_{module}.py::test_{n}" for module in ("greet", "part") for n in range(8)),
        flaky_tests=(
            FlakyTest(test=f"tests/test_net.py::{texts.title}", counts={RunVariant.GOLD: {"passed": 2, "failed": 1}}),
        ),
        controls=(texts.test,),
        runs=tuple(make_run(variant, seed, log) for variant in RunVariant for seed in (0, 1)),
    )
    verdict = records.make_verdict(
        verification,
        underspecified=0.18 + number % 5 / 10,
        unfair_tests=0.07,
        completion=Completion(model="", prompt="", addition="- The name `DEFAULT_NAME`.", made_by="rules"),
        findings=(
            Finding(rule="message-not-stated", quote=texts.quote, detail=f"a test needs words that are not there: {texts.title}",
                    quote_source=QuoteSource.STATEMENT),
            Finding(rule="name-not-stated", quote="DEFAULT_NAME", detail="a name that only the patch has", quote_source=QuoteSource.PATCH),
        ),
    )  # fmt: skip
    task = records.make_task(
        verification, candidate, name=f"{texts.name}.{kind.value}", kind=kind, language=texts.language, hints=texts.hints,
        controls=verification.controls, plan=make_plan(texts), test_seconds=3.2,
    )  # fmt: skip
    store.add_mined_changes((pull, candidate, 0.4), tags=[records.make_tags(pull)])
    results = [
        (Stage.BUILD, environment, None),
        (Stage.VERIFY, verification, None),
        (Stage.JUDGE, verdict, None),
        (Stage.DERIVE, task, kind),
    ]
    if certified:
        results.append((Stage.CERTIFY, records.make_certificate(task), kind))
    for stage, record, of in results:
        store.add_stage_results(
            StageResult(stage=stage, result=record, source=pull.source, name=pull.name, seconds=12.5, kind=of)
        )
    store.add(
        Audit(
            parent=task.id, name=task.name, clean=False, at="2024-06-01T12:00:00+00:00", probes=({"name": "no-op", "value": 0.0},),
            findings=({"kind": "leak", "location": texts.title, "description": f"a file names the fix: {texts.quote}"},),
        )
    )  # fmt: skip
    score = Score(task=task.name, value=1.0, resolved=True, f2p_rate=1.0, p2p_rate=1.0, explanation=texts.title)
    store.add_score(score, task.id, records.make_sha(texts.name))
    return task.name


def add_rejected_change(
    store: Store, artifacts: Artifacts, number: int, stage: Stage, reason: str, detail: str, **pull_fields: Any
) -> None:
    """Add a change that a stage rejected."""
    pull = records.make_pull_request(
        number, **{"source": "github:ada/greet", "title": TITLES[number % 6]} | pull_fields
    )
    log = artifacts.put_text(f"{LOG}\n{detail}")
    if stage is Stage.MINE:
        store.add_mined_changes(
            (pull, records.make_rejection(pull, stage, reason, detail=detail, source=pull.source), 0.1)
        )
        return
    candidate = records.make_candidate(pull)
    store.add_mined_changes((pull, candidate, 0.1))
    parent: Any = candidate
    if stage is Stage.VERIFY:
        parent = records.make_environment(candidate)
        store.add_stage_results(
            StageResult(stage=Stage.BUILD, result=parent, source=pull.source, name=pull.name, seconds=40.0)
        )
    rejection = records.make_rejection(
        parent, stage, reason, detail=detail, log=log, source=pull.source, attempts=make_attempts(make_texts(4))
    )
    store.add_stage_results(
        StageResult(stage=stage, result=rejection, source=pull.source, name=pull.name, seconds=64.0)
    )


def make_plan(texts: ForeignTexts) -> BuildPlan:
    return BuildPlan(
        language=texts.language,
        language_version="3.11",
        exclude_newer="2024-03-01",
        system_packages=("libffi-dev",),
        dependency_steps=("uv pip install -r requirements/tests.txt",),
        source_steps=("uv pip install --no-deps -e .",),
        test=TestCommand(framework="pytest", argv=("pytest", "-p", "no:cacheprovider")),
        evidence=(
            Evidence(choice="language_version", value="3.11", path=".github/workflows/tests.yml", line=18),
            Evidence(choice="dependency_steps", value="requirements/tests.txt", path="tox.ini", line=4, note="deps of the first environment"),
            Evidence(choice="system_packages", value="libffi-dev", path="(default)", line=0, note=texts.title),
            Evidence(choice="exclude_newer", value="2024-03-01", path="(date)", line=0),
        ),
    )  # fmt: skip


def make_attempts(texts: ForeignTexts) -> tuple[Attempt, ...]:
    first = Attempt(
        number=1, proposed_by="draft", rationale="from the repository's own files", edits=(), reason="build-failed",
        detail=f"fatal error: ffi.h: No such file or directory ({texts.title})", seconds=41.0,
    )  # fmt: skip
    second = Attempt(
        number=2, proposed_by="(skill header-other)", rationale="ffi.h is in libffi-dev",
        edits=("add-system-package libffi-dev",), reason="accepted", detail="14 of 14 files collected", seconds=28.0,
    )  # fmt: skip
    return (first, second)


def make_run(variant: RunVariant, seed: int, log: str) -> TestRun:
    failed = {RunVariant.TEST_ONLY: 2, RunVariant.CONTROL: 1}.get(variant, 0)
    return TestRun(
        variant=variant, seed=seed, script=records.make_sha("script"), image_digest="sha256:" + records.make_sha("image"),
        report=records.make_sha("report"), log=log, exit_code=int(failed > 0), killed_by=None, seconds=4.0 + seed,
        test_seconds=3.0 + seed / 10, counts=Counts(passed=18 - failed, failed=failed, skipped=1),
    )  # fmt: skip


def add_rollout(folder: Path, rollout: str, task: str, text: str = "") -> None:
    """Write a trajectory in ATIF 1.8."""
    calls = [
        ("bash", {"command": "grep -rn 'def greet' ."}, "./greet.py:6:def greet(name: str) -> str:"),
        ("bash", {"command": "python -m pytest -q tests/test_greet.py"}, f"2 failed, 14 passed in 3.21s\n{text}"),
        ("edit", {"path": "greet.py", "old": "name.strip()[0]", "new": "cleaned[0]"}, f"edited greet.py {text}"),
    ]
    steps: list[dict[str, Any]] = [
        {"step_id": 1, "source": "system", "message": f"You are a careful engineer. {text}"},
        {"step_id": 2, "source": "user", "message": STATEMENT + text, "timestamp": "2024-05-01T10:00:00Z"},
    ]
    for number, (name, arguments, result) in enumerate(calls, start=3):
        steps.append(
            {
                "step_id": number,
                "source": "agent",
                "timestamp": f"2024-05-01T10:0{number}:00Z",
                "message": f"I look for the cause, then change as little as possible. {text}",
                "reasoning_content": f"The traceback names `name.strip()[0]`. {text}",
                "tool_calls": [
                    {"tool_call_id": f"c{number}", "function_name": name, "arguments": arguments | {"note": text}}
                ],
                "observation": {"results": [{"source_call_id": f"c{number}", "content": result}]},
                "metrics": {"prompt_tokens": 1200 * number, "completion_tokens": 96},
            }
        )
    steps.append(
        {"step_id": 6, "source": "agent", "message": f"The empty name greets a friend; all tests pass. {text}"}
    )
    data = {
        "schema_version": "ATIF-v1.8",
        "session_id": rollout,
        "task": task,
        "agent": {"name": "mini-swe-agent", "version": "2.1", "model_name": text or "qwen3-coder"},
        "steps": steps,
        "reward": 1.0,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{rollout}.json").write_text(json.dumps(data))


def add_run(folder: Path, text: str = "") -> None:
    """Write the status of a run that is in progress."""
    now = datetime.now(UTC)
    stages = {
        "mine": {"passed": 214, "rejected": 377, "failed": 0},
        "build": {"passed": 96, "rejected": 18, "failed": 1},
        "verify": {"passed": 71, "rejected": 22, "failed": 0},
        "judge": {"passed": 71, "rejected": 0, "failed": 0},
        "derive": {"passed": 88, "rejected": 6, "failed": 0},
        "certify": {"passed": 84, "rejected": 2, "failed": 0},
    }
    names = ("pallets__flask-5063", "spf13__cobra-2120", "expressjs__express-5555")
    events = [
        {"stage": stage, "name": f"{name}{text}", "ok": stage != "verify", "reason": None if stage != "verify" else "no-fail-to-pass"}
        for name in names
        for stage in ("build", "verify", "judge")
    ]  # fmt: skip
    status = {
        "id": f"{now:%Y%m%dT%H%M%S}-1",
        "command": "run",
        "sources": [f"github:pallets/flask{text}", "github:spf13/cobra"],
        "state": "running",
        "host": "builder-1",
        "pid": 4711,
        "started_at": datetime.fromtimestamp(now.timestamp() - 2700, UTC).isoformat(timespec="seconds"),
        "updated_at": datetime.fromtimestamp(now.timestamp() + 3600, UTC).isoformat(timespec="seconds"),
        "stages": stages,
        "earlier": 36,
        "seconds_left": 1815.0,
        "running": [
            {"stage": "build", "name": f"pallets__flask-5121{text}", "seconds": 74},
            {"stage": "verify", "name": "spf13__cobra-2131", "seconds": 12},
        ],
        "done": 128,
        "total": 214,
        "events": events,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{status['id']}.json").write_text(json.dumps(status))
