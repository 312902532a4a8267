"""Groups of words that indicate kinds of changes. `GROUPS` is the complete vocabulary of the word rules.

Words are compared without endings. `GROUP_WEIGHTS` holds the kinds of each group, with the weight in the title and in
the text (logarithm of odds). The weights of bugfix, refactor and performance are learned, see `weights.py`.
"""

from __future__ import annotations

from taskdb.records.tags import ChangeKind

GROUPS: dict[str, str] = {
    "repair": (
        "fix fixes fixup bugfix hotfix repair resolve correct correction patch workaround rectify "
        "unbreak restore solve amend"
    ),
    "fault": (
        "bug defect regression crash fault failure fail segfault deadlock hang freeze broken break "
        "breakage wrong wrongly incorrect incorrectly invalid error mistake oops bad inconsistent "
        "corrupt misbehave problem issue glitch infinite undefined uninitialized uninitialised "
        "traceback exception mismatch bogus stale garbage"
    ),
    "lack": ("missing forgot forgotten lost absent typo mistyped misspelled unnecessary superfluous missed omitted"),
    "prevent": (
        "prevent avoid ensure don't doesn't shouldn't should properly handle guard again actually "
        "instead sanitize tolerate honor honour respect stop protect isn't can't won't"
    ),
    "add": (
        "add addition introduce implement implementation new create support allow enable feature provide "
        "ability initial expose extend enhance enhancement accept offer begin wip first"
    ),
    "alter": (
        "update change use set make switch modify adjust tweak increase decrease convert improve "
        "improvement move adapt port show let require"
    ),
    "restructure": (
        "refactor refactoring rename restructure reorganize reorganise extract split consolidate "
        "simplify simplification deduplicate duplicate duplication inline encapsulate abstract "
        "generalize decouple modularize rewrite rework reuse factor hoist collapse unify "
        "separate relocate helper utility util convenience revise rearrange reorder"
    ),
    "tidy": (
        "clean cleanup cleaning cleaner tidy unused dead obsolete redundant unneeded useless "
        "unnecessary rid polish cosmetic simpler nicer readability readable"
    ),
    "prose": (
        "doc docs document documentation documented readme comment comments docstring javadoc doxygen "
        "manual guide wiki sphinx changelog tutorial faq description wording grammar spelling spell md "
        "rst text info news note notes mention todo typo typos"
    ),
    "looks": (
        "indent indentation whitespace format formatting formatted lint linter pep8 flake8 style "
        "styling checkstyle rubocop prettier black isort eslint newline spacing semicolon pylint "
        "clippy gofmt spaces tabs reindent reformat"
    ),
    "check": "test tests testing spec coverage unittest testcase pytest rspec assert mock fixture tested",
    "speed": (
        "perf performance speed fast faster slow slower speedup optimize optimise optimization "
        "optimisation optimized efficient efficiency latency throughput cheaper expensive bottleneck "
        "overhead"
    ),
    "memory": (
        "memory cache caching memoize lazy lazily prefetch batch allocation allocate inefficient "
        "quick quickly cpu benchmark profile profiling vectorize vectorise parallelize"
    ),
    "version": "release version bump prerelease snapshot tag",
    "need": (
        "dependency dependencies dependency deps requirement requirements upgrade downgrade pin unpin "
        "gem package vendor submodule library lockfile"
    ),
    "make": (
        "build makefile cmake autotools configure setup packaging wheel compile compilation compiler "
        "gradle maven bazel linker toolchain webpack dockerfile docker install installer"
    ),
    "robot": ("ci travis jenkins appveyor circleci workflow workflows azure codecov tox nox pipeline buildkite"),
    "danger": (
        "security vulnerability vulnerable cve xss csrf injection exploit sanitize ssrf redos dos "
        "malicious traversal privilege leak"
    ),
    "undo": "revert reverts reverted rollback undo backout",
    "port": "backport cherry forwardport picked",
    "join": "merge merged merging",
    "old": "deprecate deprecated deprecation deprecations",
    "gone": "remove removed removing removal drop delete deleted eliminate",
    "rupture": "breaking incompatible",
    "fit": (
        "compatibility compat compatible python3 windows macos osx linux platform portability bsd "
        "android ios aarch arm py3 numpy2 pypy"
    ),
    "raise": "raise exception exceptions error errors validate validation message messages",
    "tell": (
        "log logging logger logs debug metric metrics trace tracing telemetry verbose verbosity warning monitoring"
    ),
    "parallel": (
        "thread threads threading lock locking race concurrent concurrency async asyncio await "
        "mutex deadlock multiprocessing atomic"
    ),
    "setting": (
        "config configuration configure setting settings option options flag flags default defaults parameter env"
    ),
    "face": "ui ux cli gui css html page button layout icon menu dialog theme color colour display frontend",
    "tongue": (
        "translation translations translate locale localization localisation i18n l10n gettext language languages"
    ),
    "access": "accessibility a11y aria screenreader wcag",
    "data": "dataset datasets asset assets migration migrations schema fixture fixtures images image icons",
    "licence": "license licence copyright copyrights spdx authors",
    "annotate": "typing mypy annotation annotations typed pyi pyright stubs typehint",
    "show": "example examples demo tutorial notebook sample samples gallery",
    "keep": "chore maintenance housekeeping misc gitignore editorconfig",
}
"""Group -> its words."""

QUALIFIED_GROUPS = (
    "prose",
    "looks",
    "check",
    "robot",
    "make",
    "annotate",
    "tongue",
    "lack",
    "add",
    "restructure",
    "tell",
)
"""Groups that name the repaired object: `fix typo in docs` repairs no program."""

GROUP_WEIGHTS: dict[str, tuple[tuple[ChangeKind, float, float], ...]] = {
    "repair": ((ChangeKind.FEATURE, -1.5, -0.3),),
    "fault": ((ChangeKind.FEATURE, -1.0, 0.0),),
    "add": ((ChangeKind.FEATURE, 2.4, 0.5),),
    "restructure": ((ChangeKind.FEATURE, -1.0, 0.0),),
    "tidy": ((ChangeKind.FEATURE, -1.0, 0.0), (ChangeKind.CHORE, 0.8, 0.0)),
    "prose": ((ChangeKind.DOCUMENTATION, 3.2, 0.3), (ChangeKind.FEATURE, -1.2, 0.0)),
    "looks": ((ChangeKind.STYLE, 3.2, 0.3), (ChangeKind.FEATURE, -1.0, 0.0)),
    "check": ((ChangeKind.TEST, 3.0, 0.3), (ChangeKind.FEATURE, -1.4, 0.0)),
    "version": ((ChangeKind.RELEASE, 2.2, 0.0), (ChangeKind.FEATURE, -1.0, 0.0)),
    "need": ((ChangeKind.DEPENDENCY, 2.6, 0.2), (ChangeKind.FEATURE, -0.8, 0.0)),
    "make": ((ChangeKind.BUILD, 2.6, 0.2), (ChangeKind.FEATURE, -0.8, 0.0)),
    "robot": ((ChangeKind.CI, 3.2, 0.2), (ChangeKind.FEATURE, -1.2, 0.0)),
    "danger": ((ChangeKind.SECURITY, 2.8, 0.6),),
    "undo": ((ChangeKind.REVERT, 3.4, 0.3),),
    "port": ((ChangeKind.BACKPORT, 2.8, 0.6),),
    "join": ((ChangeKind.MERGE, 1.6, 0.0),),
    "old": ((ChangeKind.DEPRECATION, 3.2, 0.8),),
    "gone": ((ChangeKind.REMOVAL, 2.7, 0.3),),
    "rupture": ((ChangeKind.BREAKING, 3.0, 1.0),),
    "fit": ((ChangeKind.COMPATIBILITY, 2.8, 0.3),),
    "raise": ((ChangeKind.ERROR_HANDLING, 2.5, 0.2),),
    "tell": ((ChangeKind.LOGGING, 2.7, 0.2),),
    "parallel": ((ChangeKind.CONCURRENCY, 2.9, 0.4),),
    "setting": ((ChangeKind.CONFIGURATION, 2.6, 0.2),),
    "face": ((ChangeKind.INTERFACE, 2.6, 0.2),),
    "tongue": ((ChangeKind.LOCALISATION, 2.8, 0.2),),
    "access": ((ChangeKind.ACCESSIBILITY, 3.4, 1.0),),
    "data": ((ChangeKind.DATA, 2.4, 0.1),),
    "licence": ((ChangeKind.LICENCE, 3.0, 0.1),),
    "annotate": ((ChangeKind.TYPING, 3.2, 0.3), (ChangeKind.FEATURE, -0.8, 0.0)),
    "show": ((ChangeKind.EXAMPLE, 2.6, 0.1), (ChangeKind.FEATURE, -0.8, 0.0)),
    "keep": ((ChangeKind.CHORE, 3.0, 0.3),),
}
"""Group -> kinds, each with its weight in the title and in the text."""

PHRASES: tuple[tuple[ChangeKind, float, str], ...] = (
    (ChangeKind.DEPENDENCY, 4.0, r"^(bump|update|upgrade|pin|unpin)\b.+\b((from|to) [~=<>^]*v?\d|requirements?|deps)"),
    (ChangeKind.RELEASE, 3.5, r"\bbump\w* (the )?(dev )?version|^(release|version|prepare|start)\b.*\d\.\d|^v?\d+\.\d"),
    (ChangeKind.REMOVAL, 1.5, r"\b(drop|end)(s|ped|ping|ed|ing)? (\w+ )*support"),
    (ChangeKind.COMPATIBILITY, 2.6, r"\bsupport\w* (for )?(python|numpy|pandas|windows|pypy)\b|\bpy(thon)? ?3"),
    (ChangeKind.BACKPORT, 4.0, r"^\[\d[\d.x]*\]|^\[?(back|forward)[- ]?port\b"),
    (ChangeKind.ERROR_HANDLING, 1.5, r"\b(better|clearer|helpful|improve\w*) .*\b(error|exception|message)"),
    (ChangeKind.PERFORMANCE, 2.5, r"\b(avoid|reduce|fewer) .*\b(cop(y|ies)|allocations?|calls|queries|memory|time)\b"),
)
"""Kind, weight, and pattern of a title (case ignored)."""
