"""Trials of surroundings: the change's own tests run with the gold patch in another time zone, or in a terminal.

Such tests fail with a message about an hour or a line's width, which names no cause. The image stays the same, so a
trial costs a run of the change's tests; a change that helps becomes a proposal that is built and accepted like any
other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from backends.git import GitError
from backends.tree import CommitTree
from builders.gold_check import find_failing_tests, list_gold_files, render_gold_script
from builders.repair.edits import AddService, DraftEdit, SetEnv
from builders.repair.policy import Observation, RepairCase
from evaluation.runner.run import run_tests
from taskdb.records import BuildPlan, Candidate

MAX_ZONES = 4
MAX_SECONDS = 120.0
"""Time limit of a trial; tests of the change that are slower are not tried again."""
_ZONE = re.compile(
    r"\b(?:Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific|US|Canada)/[A-Z]\w+(?:/[A-Z]\w+)?\b"
)
_ABOUT_TIME = re.compile(
    r"\b(time|date|datetime|time_?zone|tz|hours?|clock|localtime|strftime|mktime|moment|dayjs|luxon|Date|LocalDate\w*"
    r"|LocalTime|ZonedDateTime|Time)\b"
)
_ABOUT_TERMINAL = re.compile(r"tty|\bterminal|\bcurses\b|\breadline\b|\bprompt|\bgetpass\b|\bTERM\b", re.IGNORECASE)
_FILES_WITH_ZONES = re.compile(
    r"(^|/)(conftest\.py|setup\.cfg|tox\.ini|pytest\.ini|pyproject\.toml|noxfile\.py|Makefile|package\.json|\.travis\.yml"
    r"|(jest|vitest)[\w.-]*\.(config|setup)\.\w+|pom\.xml|build\.gradle(\.kts)?|README\.\w+|CONTRIBUTING\.\w+)$|\.ya?ml$"
)
_ZONES_BY_OFFSET = {
    "-0800": "America/Los_Angeles",
    "-0700": "America/Los_Angeles",
    "-0600": "America/Chicago",
    "-0500": "America/New_York",
    "-0400": "America/New_York",
    "-0300": "America/Sao_Paulo",
    "+0100": "Europe/Berlin",
    "+0200": "Europe/Berlin",
    "+0300": "Europe/Moscow",
    "+0530": "Asia/Kolkata",
    "+0800": "Asia/Shanghai",
    "+0900": "Asia/Tokyo",
    "+1000": "Australia/Sydney",
}
"""Offset of an author's clock -> a time zone with it."""
_MOST_COMMON_ZONES = ("America/New_York", "Europe/Berlin")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Edits that change the tests' surroundings and not the image, and the reason to try them."""

    edits: tuple[DraftEdit, ...]
    reason: str


def find_helpful_trial(case: RepairCase, observation: Observation) -> Trial | None:
    """Return the first trial in which fewer tests of the change fail than in the observed image; None where none helps.

    Raises:
        Transient: the engine failed.
    """
    plan, tree, candidate, services = observation.plan, case.tree, case.candidate, case.services
    report = observation.report
    failing = len(report.list_failing(observation.expected_files)) if report else 1
    gold_patch = services.artifacts.get(candidate.gold_patch)
    patches = (gold_patch + services.artifacts.get(candidate.test_patch)).decode(errors="replace")
    trials = list(list_trials(patches, tree, candidate, dict(plan.env).get("TZ", "")))
    if not trials:
        return None
    limits = services.test_limits(plan.language)
    limits = replace(limits, seconds=min(limits.seconds, MAX_SECONDS))
    files = list_gold_files(candidate)
    with services.sandbox.open_pool(observation.image, limits=limits) as pool:
        for at, trial in enumerate(trials, 1):
            script = render_gold_script(edit_plan(plan, trial.edits), candidate, services)
            run = run_tests(pool, script, workdir=plan.workdir, patch=gold_patch, last=at == len(trials))
            if run.exec_result.killed_by:
                return None
            if run.report is not None and not run.script_error and len(find_failing_tests(run, files)) < failing:
                return trial
    return None


def edit_plan(plan: BuildPlan, edits: Sequence[DraftEdit]) -> BuildPlan:
    """Return the plan with variables and services that need no other image."""
    env, servers = dict(plan.env), list(plan.services)
    for edit in edits:
        if isinstance(edit, SetEnv):
            env[edit.name] = edit.value
        elif isinstance(edit, AddService):
            servers.append(edit.name)
    return plan.model_copy(update={"env": tuple(env.items()), "services": tuple(servers)})


def list_trials(patches: str, tree: CommitTree, candidate: Candidate, current_zone: str) -> Iterator[Trial]:
    """Yield the trials that the text of the change gives a reason for."""
    if _ABOUT_TIME.search(patches):
        zones: dict[str, str] = {}
        for zone, reason in _list_zones(patches, tree, candidate):
            zones.setdefault(zone, reason)
        for zone, reason in list(zones.items())[:MAX_ZONES]:
            if zone != current_zone:
                yield Trial(edits=(SetEnv(name="TZ", value=zone),), reason=reason)
    if _ABOUT_TERMINAL.search(patches):
        edits = (AddService(name="terminal"), SetEnv(name="TERM", value="xterm"))
        yield Trial(edits=edits, reason="the change mentions a terminal")


def _list_zones(patches: str, tree: CommitTree, candidate: Candidate) -> Iterator[tuple[str, str]]:
    """Yield (time zone, reason): those that the change or a setting names, the author's own, common options."""
    for zone, _ in Counter(_ZONE.findall(patches)).most_common(2):
        yield zone, "the change names it"
    paths = sorted(path for path in tree.entries if _FILES_WITH_ZONES.search(path))[:200]
    for path, text in tree.read_many(paths).items():
        for match in _ZONE.finditer(text):
            yield match.group(), f"{path}:{text.count(chr(10), 0, match.start()) + 1} names it"
    for commit in (candidate.merge_commit, candidate.base_commit):
        try:
            written = tree.repository.run_git("show", "-s", "--format=%ad", "--date=format:%z", commit or "").decode()
        except GitError:  # a published row need not have the merge
            continue
        if zone := _ZONES_BY_OFFSET.get(written.strip()):
            yield zone, f"the clock of {commit[:12]}'s author was at {written.strip()}"
    yield from ((zone, "many developers work in it") for zone in _MOST_COMMON_ZONES)
