"""Where changes of each kind go. Reading ROUTES is reading which kinds of tasks they can become, or why none.

Routes name kinds of tasks of docs/cli.md. Which of them are derived today is the derivers' affair: a route says what a
change is good for, so that nothing has to be mined again when another deriver comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from taskdb.tags import ChangeKind as K


class Route(NamedTuple):
    """Kinds of tasks, or, where there are none, why a change of this kind alone stops."""

    tasks: tuple[str, ...]
    stops: str = ""


_BEHAVIOUR = ("bugfix", "test-writing", "review", "injected", "combined")
_NEW = ("feature", "test-writing", "review", "injected", "combined")

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
    K.PERFORMANCE: Route(("performance", "review", "injected")),
    K.REFACTOR: Route(("review", "injected")),
    K.TEST: Route(("test-writing",)),
    K.TYPING: Route((), "annotations alone change nothing that a test can see"),
    K.STYLE: Route((), "formatting changes nothing that a test can see"),
    K.DOCUMENTATION: Route((), "no test can see documentation"),
    K.EXAMPLE: Route((), "examples are not what tests run"),
    K.DEPENDENCY: Route((), "other versions are another environment, not another program"),
    K.BUILD: Route((), "the environment is made from it; nothing in the box can be asked"),
    K.CI: Route((), "it runs on somebody else's machines"),
    K.RELEASE: Route((), "a version number is not work"),
    K.REVERT: Route((), "it takes back work, the statement is the earlier change's"),
    K.BACKPORT: Route((), "the same change is told on another branch"),
    K.MERGE: Route((), "what was merged is told by itself"),
    K.DATA: Route((), "data cannot be worked out from a statement"),
    K.LICENCE: Route((), "no test can see licence texts"),
    K.CHORE: Route((), "housekeeping, nothing that a test can see"),
    K.OTHER: Route((), "nothing says what it is"),
}
"""Kind of change -> what can be made of it."""

SEEN_BY_TESTS = ("bugfix", "test-writing", "review")
"""What a change of source and tests is good for whatever its title says: the tests decide, not the words."""


def route_of(kinds: Sequence[K], *, source_and_tests: bool, same_program: bool, source_alone: bool = False) -> Route:
    """The route of a change of these kinds, the primary one first.

    Args:
        kinds: kinds of the change.
        source_and_tests: both sides are touched: no title speaks against what tests may see.
        same_program: the diff shows that the program does the same as before.
        source_alone: only source is touched. Speed is then seen by tests that were there before.
    """
    tasks = dict.fromkeys(task for kind in kinds for task in ROUTES[kind].tasks)
    if same_program:
        return Route((), ROUTES[kinds[0]].stops or "the program is the same as before")
    if source_and_tests:
        tasks |= dict.fromkeys(SEEN_BY_TESTS)
    elif source_alone and kinds[0] is K.PERFORMANCE:
        tasks = dict.fromkeys(ROUTES[K.PERFORMANCE].tasks)
    elif not set(kinds) & {K.TEST}:
        tasks = {}
    else:
        tasks = {task: None for task in tasks if task == "test-writing"}
    if tasks:
        return Route(tuple(tasks))
    return Route((), ROUTES[kinds[0]].stops or "source and tests are not both changed")
