"""Tags of a change: its kinds with the evidence for each, languages, size, areas, and its route."""

from __future__ import annotations

from enum import StrEnum

from taskdb.records.base import Part, Record


class ChangeKind(StrEnum):
    """Kind of a change. A change may be of several kinds; docs/guide/mine/tags.md lists them with their routes."""

    BUGFIX = "bugfix"
    """Corrects wrong behaviour."""
    FEATURE = "feature"
    """Adds behaviour."""
    PERFORMANCE = "performance"
    """Same behaviour with less time or memory."""
    REFACTOR = "refactor"
    """Changes the structure, not the behaviour."""
    TEST = "test"
    """Tests are added or altered."""
    DOCUMENTATION = "documentation"
    """Documentation, docstrings or comments."""
    EXAMPLE = "example"
    """Examples, tutorials, demos, notebooks."""
    STYLE = "style"
    """Formatting, lint, naming by convention: no change of behaviour."""
    TYPING = "typing"
    """Type annotations, stubs, the type checker."""
    DEPENDENCY = "dependency"
    """Other requirements or other versions of them."""
    BUILD = "build"
    """Build system and packaging."""
    CI = "ci"
    """Continuous integration, hooks, bots' configuration."""
    RELEASE = "release"
    """A version number, a changelog, a release."""
    REVERT = "revert"
    """Reverts an earlier change."""
    BACKPORT = "backport"
    """Applies a change to another branch."""
    MERGE = "merge"
    """Merges a branch without changes of its own."""
    SECURITY = "security"
    """Closes a vulnerability or hardens against an attack."""
    DEPRECATION = "deprecation"
    """Warns of a future removal."""
    REMOVAL = "removal"
    """Removes code, a feature, or support for something."""
    BREAKING = "breaking"
    """Callers must change: an interface or a default is different."""
    COMPATIBILITY = "compatibility"
    """Supports another platform, interpreter or version of something."""
    ERROR_HANDLING = "error-handling"
    """Exceptions, messages or checks of input."""
    LOGGING = "logging"
    """Logs, metrics, traces, warnings."""
    CONCURRENCY = "concurrency"
    """Threads, locks, processes, asynchronous code."""
    CONFIGURATION = "configuration"
    """Settings, options, defaults, flags."""
    INTERFACE = "interface"
    """User interface: command line, pages, texts, layout."""
    LOCALISATION = "localisation"
    """Translations, locales, texts made translatable."""
    ACCESSIBILITY = "accessibility"
    """Usable with screen readers, keyboards, contrast."""
    DATA = "data"
    """Data, assets, tables, fixtures, database schemas."""
    LICENCE = "licence"
    """Licence texts, copyright lines, authors' lists."""
    CHORE = "chore"
    """Housekeeping that is none of the others."""
    OTHER = "other"
    """There is no evidence for any kind."""


class Activity(StrEnum):
    """Swanson's three kinds of maintenance (The dimensions of maintenance, ICSE 1976)."""

    CORRECTIVE = "corrective"
    ADAPTIVE = "adaptive"
    PERFECTIVE = "perfective"


class Size(StrEnum):
    """Changed lines: XS up to 9, S up to 49, M up to 199, L up to 999, XL beyond."""

    XS = "XS"
    S = "S"
    M = "M"
    L = "L"
    XL = "XL"


class TagEvidence(Part):
    """A piece of evidence for a kind."""

    rule: str
    """Name of the rule that found it, such as `label`, `convention`, `title`, `path`."""
    quote: str
    """The label, words or path it matched."""
    weight: float
    """Amount that it adds to the log odds; negative is evidence against."""


class Tag(Part):
    """A kind of a change with its evidence."""

    change_kind: ChangeKind
    confidence: float
    """0..1, from the weights of all evidence."""
    evidence: tuple[TagEvidence, ...]
    """The strongest first."""


class LanguageShare(Part):
    """How much of a change is in a single language."""

    language: str
    files: int
    share: float
    """Of the changed lines in files of a known language, where patches were made; else of those files."""


class Tags(Record):
    """Tags of a change. Stored for every change, rejected too."""

    parent: str
    """Id of the PullRequest."""
    name: str
    change_kinds: tuple[Tag, ...]
    """The primary kind first, then by confidence; never empty."""
    activities: tuple[Activity, ...]
    languages: tuple[LanguageShare, ...]
    """The largest share first."""
    size: Size
    """By changed lines; where there is no patch, each changed file counts as ten lines."""
    changed_files: int
    changed_lines: int | None
    """Added and removed lines; null where a rule rejected the change before its patch was made."""
    areas: tuple[str, ...]
    """Packages and folders touched, at most two levels deep, the most touched first; `.` is the root."""
    route: tuple[str, ...]
    """Kinds of tasks that can be derived from it, by ROUTES; empty when it is rejected."""
    stop_reason: str
    """Why no task can be derived, or empty."""

    @property
    def primary(self) -> ChangeKind:
        """The primary kind."""
        return self.change_kinds[0].change_kind
