"""Routes: the kinds of tasks that can be derived from each kind of change. `ROUTES` is the complete mapping.

A route names kinds of tasks of docs/guide/derive/kinds.md, whether or not a deriver for them exists yet, so that
nothing has to be mined again when one is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from taskdb.records.tags import ChangeKind as K


class Route(NamedTuple):
    """Kinds of tasks or, if there are none, why a change of this kind alone is rejected."""

    tasks: tuple[str, ...]
    rejection: str = ""


_BEHAVIOUR = ("bugfix", "test-writing", "review", "injected", "rebuild", "combined")
_NEW = ("feature", "test-writing", "review", "injected", "rebuild", "combined")

ROUTES: dict[K, Route] = {
    K.BUGFIX: Route(_BEHAVIOUR),
    K.SECURITY: Route(_BEHAVIOUR),
    K.ERROR_HANDLING: Route(_BEHAVIOUR),
    K.CONCURRENCY: Route(_BEHAVIOUR),
    K.COMPATIBILITY: Route(_BEHAVIOUR),
    K.FEATURE: Route(_NEW),
    K.BREAKING: Route(_NEW),
    K.DEPRECATION: Route(_NEW),
    K.REMOVAL: Route(_NEW),
    K.CONFIGURATION: Route(_NEW),
    K.LOGGING: Route(_NEW),
    K.INTERFACE: Route(_NEW),
    K.LOCALISATION: Route(_NEW),
    K.ACCESSIBILITY: Route(_NEW),
    K.PERFORMANCE: Route(("performance", "review", "injected", "rebuild")),
    K.REFACTOR: Route(("review", "injected", "rebuild")),
    K.TEST: Route(("test-writing",)),
    K.TYPING: Route((), "annotations do not change test results"),
    K.STYLE: Route((), "formatting does not change test results"),
    K.DOCUMENTATION: Route((), "documentation is not tested"),
    K.EXAMPLE: Route((), "examples are not tested"),
    K.DEPENDENCY: Route((), "other versions change the environment, not the program"),
    K.BUILD: Route((), "it changes how the environment is built, which no test in it can check"),
    K.CI: Route((), "it is not run by tests"),
    K.RELEASE: Route((), "a version number is no task"),
    K.REVERT: Route((), "it undoes another change and has no statement of its own"),
    K.BACKPORT: Route((), "the original change is mined from its own branch"),
    K.MERGE: Route((), "the merged changes are mined on their own"),
    K.DATA: Route((), "data cannot be derived from a statement"),
    K.LICENCE: Route((), "licence texts are not tested"),
    K.CHORE: Route((), "housekeeping does not change test results"),
    K.OTHER: Route((), "its kind is unknown"),
}
"""Kind of change -> kinds of tasks."""

TEST_DETECTABLE_TASKS = ("bugfix", "test-writing", "review")
"""Kinds of tasks for a change of source and tests, whatever its title: test results decide, not words."""


def find_route(kinds: Sequence[K], *, source_and_tests: bool, same_program: bool, source_alone: bool = False) -> Route:
    """Return the route of a change of these kinds, the primary kind first.

    Args:
        kinds: kinds of the change.
        source_and_tests: source and tests are changed.
        same_program: the diff proves that behaviour does not change.
        source_alone: only source is changed; a performance gain is then measured by existing tests.
    """
    tasks = dict.fromkeys(task for kind in kinds for task in ROUTES[kind].tasks)
    if same_program:
        return Route((), ROUTES[kinds[0]].rejection or "behaviour does not change")
    if source_and_tests:
        tasks |= dict.fromkeys(TEST_DETECTABLE_TASKS)
    elif source_alone and kinds[0] is K.PERFORMANCE:
        tasks = dict.fromkeys(ROUTES[K.PERFORMANCE].tasks)
    elif not set(kinds) & {K.TEST}:
        tasks = {}
    else:
        tasks = {task: None for task in tasks if task == "test-writing"}
    if tasks:
        return Route(tuple(tasks))
    return Route((), ROUTES[kinds[0]].rejection or "source and tests are not both changed")
