"""What a change is: its kinds with the evidence for each, languages, size, areas, and where it goes from here."""

from __future__ import annotations

from enum import StrEnum

from taskdb.base import Part, Record


class ChangeKind(StrEnum):
    """What a change does. A change may be of several kinds; docs/tags.md lists them with their routes."""

    BUGFIX = "bugfix"
    """Something behaved wrongly and does so no more."""
    FEATURE = "feature"
    """The program can do something that it could not do before."""
    PERFORMANCE = "performance"
    """The same with less time or memory."""
    REFACTOR = "refactor"
    """Another structure, the same behaviour."""
    TEST = "test"
    """Tests are added or altered."""
    DOCUMENTATION = "documentation"
    """Documentation, docstrings or comments."""
    EXAMPLE = "example"
    """Examples, tutorials, demos, notebooks."""
    STYLE = "style"
    """Formatting, lint, naming by convention: no program means anything else."""
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
    """Takes an earlier change back."""
    BACKPORT = "backport"
    """Brings a change to another branch."""
    MERGE = "merge"
    """Merges a branch and is nothing of its own."""
    SECURITY = "security"
    """Closes a vulnerability or hardens against one."""
    DEPRECATION = "deprecation"
    """Warns of what will go."""
    REMOVAL = "removal"
    """Takes away code, a feature, or support for something."""
    BREAKING = "breaking"
    """Callers must change: an interface or a default is another."""
    COMPATIBILITY = "compatibility"
    """Works with another platform, interpreter or version of something."""
    ERROR_HANDLING = "error-handling"
    """Other exceptions, messages or checks of input."""
    LOGGING = "logging"
    """Logs, metrics, traces, warnings on the way."""
    CONCURRENCY = "concurrency"
    """Threads, locks, processes, asynchronous code."""
    CONFIGURATION = "configuration"
    """Settings, options, defaults, flags."""
    INTERFACE = "interface"
    """What users see: command line, pages, texts, layout."""
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
    """Nothing says what it is."""


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


class Sign(Part):
    """One piece of evidence for a kind."""

    rule: str
    """Name of the rule that saw it, such as `label`, `convention`, `title`, `path`."""
    quote: str
    """The label, words or path it saw."""
    weight: float
    """What it adds to the logarithm of the odds; negative speaks against."""


class Tag(Part):
    """A kind of a change, and why."""

    kind: ChangeKind
    confidence: float
    """0..1, by the weights of all signs."""
    signs: tuple[Sign, ...]
    """The strongest first."""


class LanguageShare(Part):
    """How much of a change is in one language."""

    language: str
    files: int
    share: float
    """Of the changed lines in files of a known language, where patches were made; else of those files."""


class Tags(Record):
    """What the rules found a change to be. Told for every change, rejected ones too."""

    parent: str
    """Id of the PullRequest."""
    name: str
    kinds: tuple[Tag, ...]
    """The primary kind first, then by confidence; never empty."""
    activities: tuple[Activity, ...]
    languages: tuple[LanguageShare, ...]
    """The largest share first."""
    size: Size
    """By lines; where no patch was made, as if each changed file had ten."""
    changed_files: int
    changed_lines: int | None
    """Added and removed lines; null where no patch was made, since a rule rejected the change before."""
    areas: tuple[str, ...]
    """Packages and folders touched, at most two levels deep, the most touched first; `.` is the root."""
    route: tuple[str, ...]
    """Kinds of tasks that can be made of it, by ROUTES; empty when it stops."""
    stops: str
    """Why it stops, or empty."""

    @property
    def primary(self) -> ChangeKind:
        """What it is above all."""
        return self.kinds[0].kind
