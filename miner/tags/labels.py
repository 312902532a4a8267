"""Kinds named by labels and conventional titles, in their many spellings."""

from __future__ import annotations

import re
from functools import lru_cache

from taskdb.records.tags import ChangeKind as K

SPELLINGS: dict[K, str] = {
    K.BUGFIX: "bug bugfix bugs fix hotfix defect regression crash fixes bugfixes patch-bug fixed",
    K.FEATURE: (
        "feature enhancement feat enh features enhancements new improvement feature-request request minor-feature"
    ),
    K.PERFORMANCE: "performance perf optimization optimisation speed slow",
    K.REFACTOR: (
        "refactor refactoring cleanup cln clean-up code-quality tech-debt technical-debt internal internals maint rf"
    ),
    K.TEST: "test tests testing tst qa",
    K.DOCUMENTATION: "documentation docs doc docstring readme",
    K.EXAMPLE: "example examples tutorial notebook demo",
    K.STYLE: "style lint linting formatting format sty whitespace",
    K.TYPING: "typing types type-hints typ annotations mypy type-checking",
    K.DEPENDENCY: "dependencies dependency deps dep requirements dependabot renovate",
    K.BUILD: "build packaging bld setup install installation wheels",
    K.CI: "ci infra github-actions workflow continuous-integration ci/cd cicd actions pre-commit travis",
    K.RELEASE: "release rel version releases version-bump",
    K.REVERT: "revert rev",
    K.BACKPORT: "backport backported cherry-pick",
    K.SECURITY: "security vulnerability cve sec",
    K.DEPRECATION: "deprecation deprecated deprecate deprecations",
    K.REMOVAL: "removal remove removed",
    K.BREAKING: ("breaking breaking-change api-break semver-major incompatible breaking-api major api-change api"),
    K.COMPATIBILITY: "compatibility compat windows macos python3 platform portability",
    K.ERROR_HANDLING: "error-handling error-messages error-reporting exceptions",
    K.LOGGING: "logging observability metrics tracing telemetry",
    K.CONCURRENCY: "concurrency threading async multiprocessing asyncio",
    K.CONFIGURATION: "configuration config settings",
    K.INTERFACE: "ui ux cli frontend gui",
    K.LOCALISATION: "i18n l10n translation translations localization localisation locale",
    K.ACCESSIBILITY: "accessibility a11y",
    K.DATA: "data assets dataset schema migration",
    K.LICENCE: "license licence legal",
    K.CHORE: "chore maintenance housekeeping mnt misc",
}
"""Kind -> words of labels and of conventional titles (`fix(core): ...`, `BUG: ...`) that name it."""

_KIND_OF = {word: kind for kind, words in SPELLINGS.items() for word in words.split()}
_FRAME = re.compile(r"^(?:(?:type|kind|category|cat|topic|c|t|tag|pr|module|area|changelog|changes?)\s*[:/\-=]\s*)+")
_DECORATION = re.compile(r"[^\w\s/&,+:\-]|:\w+:")
_CONVENTION = re.compile(r"^\W*(\w[\w -]{0,24}?)\s*(?:\([^)]*\))?(!?):\s")
_TAGGED = re.compile(r"^\[([A-Za-z][\w -]{1,20})\]")
_SHOUTED = re.compile(r"^([A-Z]{2,4})[,/ ]")
_VAGUE = {
    "new",
    "minor",
    "patch-bug",
    "fixed",
    "slow",
    "setup",
    "data",
    "types",
    "version",
    "format",
    "request",
    "api",
    "major",
}
"""Words of labels that are too ambiguous at the beginning of a title."""


@lru_cache(maxsize=10_000)
def parse_label(label: str) -> K | None:
    """Return the kind that a label names (`bug`, `type: bug`, `kind/bug`, `C-bug`, `Bug fix`), or None."""
    plain = _FRAME.sub("", _DECORATION.sub(" ", label.lower()).strip()).strip(" :-/")
    dashed = re.sub(r"[\s_]+", "-", plain)
    if kind := _KIND_OF.get(dashed) or _KIND_OF.get(dashed.replace("-", "")):
        return kind
    words = re.split(r"[\s/&,+:\-_]+", plain)
    if any(word in ("not", "no", "needs", "wontfix", "good", "invalid") for word in words) or len(words) > 3:
        return None
    return next((_KIND_OF[word] for word in words if word in _KIND_OF), None)


def parse_conventional_title(title: str) -> list[tuple[K, str]]:
    """Return the kinds that a conventional title (`feat(x)!: y`, `BUG: y`, `[DOC] y`) names, with the words."""
    kinds: list[tuple[K, str]] = []
    for pattern in (_CONVENTION, _TAGGED, _SHOUTED):
        match = pattern.match(title)
        if not match:
            continue
        word = match[1].lower().replace(" ", "-")
        if word not in _VAGUE and (kind := _KIND_OF.get(word)):
            kinds.append((kind, match[0].strip()))
        if pattern is _CONVENTION and match[2]:
            kinds.append((K.BREAKING, match[0].strip()))
        break
    return kinds
