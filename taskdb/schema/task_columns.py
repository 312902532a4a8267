"""Columns of the view `tasks` and filters over them, each declared once.

Made from these declarations: the listing and its view, indices of numeric filters, options of the command line, query
parameters, the filters and columns of the client (`scripts/task-columns` writes them into its distribution), the table
of the view in docs/guide/query/query.md and in the reference, the facts in exported rows, and the task table in
Parquet. CONTRIBUTING explains how a column is added.
"""

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import NoneType
from typing import Annotated, Any, NamedTuple, get_args

from taskdb.records import Kind, TestOrigin
from taskdb.records.oracles import ReviewTarget
from taskdb.records.tags import ChangeKind
from taskdb.schema.measures import (
    choose_split,
    compute_edit_group,
    compute_failing_set,
    count_tokens,
    get_material,
    get_review_form,
    get_review_tree,
    join_words,
)

COMMON, MORE = "Filters", "More filters"
"""Headings of filters in the help of a command."""
NEVER = "none"
"""Word for tasks that were never audited, and for empty lists of words."""
ALL = "all"
"""Word for tasks whose tests are of any origin."""


class TaskStatus(StrEnum):
    """Last stage that a task passed, or that it was rejected, or is as it was published."""

    DERIVED = "derived"
    CERTIFIED = "certified"
    REJECTED = "rejected"
    IMPORTED = "imported"


@dataclass(frozen=True, kw_only=True)
class TaskColumn:
    """Declaration of a column beside its name and type; the type of a column that may be null has `| None`."""

    doc: str
    """Text of its row in docs/guide/query/query.md; columns of the same text share a row. Links begin at docs/."""
    sql: str | None = ""
    """Expression over the tables of `taskdb.listing.TASKS_DEFINITION`: `t` task, `d` derivation, `c` candidate, `j`
    verdict, `a` newest audit. Empty: the column of table `task` of the same name; None: the listing computes it."""
    record: Callable[[Any], object] | None = None
    """Function of a `Task` whose value table `task` stores; None where `tables.TaskRow` or another table has it."""
    exported: bool = False
    """Whether rows of exported tasks have it."""

    def describe(self, folder: str) -> str:
        """Return the text for a page in a folder of docs/, such as `guide/query`: its links begin at that folder."""
        return re.sub(r"\]\(([\w/-]+\.md)", lambda link: f"]({posixpath.relpath(link[1], folder)}", self.doc)


_TASK = "the task"
_COUNTS = "tests in the lists"
_ORIGIN = "its origin"
_IMAGE = (
    "`verified`, `simulated`, `none` or `imported`, and the image with its digest, empty where there is none "
    "([Kinds](guide/derive/kinds.md))"
)
_VERDICT = (
    "of the verdict, null where there is none ([Judge](guide/verify/judge.md)); "
    "[read](guide/verify/judge.md#reading-a-verdict) its findings before its probabilities"
)
_SIZE = "of the gold patch; of tasks of earlier versions, that of the change"


class TaskColumns:
    """Columns of the view `tasks`, in order. A new column stands at the end."""

    id: Annotated[str, TaskColumn(doc=_TASK)]
    name: Annotated[str, TaskColumn(doc=_TASK)]
    kind: Annotated[str, TaskColumn(doc=_TASK, exported=True)]
    repo: Annotated[str, TaskColumn(doc=_TASK)]
    language: Annotated[str, TaskColumn(doc=_TASK, exported=True)]
    language_version: Annotated[str, TaskColumn(doc=_TASK)]
    license: Annotated[str, TaskColumn(doc=_TASK, exported=True)]
    source: Annotated[str, TaskColumn(doc=_TASK)]
    status: Annotated[
        str,
        TaskColumn(
            sql="d.status",
            doc="`derived`, `certified`, `rejected` or `imported`; the last "
            "[as it was published](guide/query/bundle.md#tasks-as-they-were-published), and not run",
        ),
    ]
    base_commit: Annotated[str, TaskColumn(doc=_TASK)]
    n_fail_to_pass: Annotated[int, TaskColumn(doc=_COUNTS, exported=True)]
    n_pass_to_pass: Annotated[int, TaskColumn(doc=_COUNTS, exported=True)]
    created_at: Annotated[str, TaskColumn(doc=_TASK)]
    published: Annotated[
        str | None,
        TaskColumn(
            record=lambda task: task.published.verdict if task.published else None,
            doc="for `instances:` sources, FAIL_TO_PASS compared with the published list: `exact`, `exact-by-name`, "
            "`exact-by-parent`, `exact-by-file`, `superset`, `subset`, `different` "
            "([instances](evidence/instances.md#verdicts))",
        ),
    ]
    environment: Annotated[str, TaskColumn(doc=_IMAGE)]
    image: Annotated[str, TaskColumn(doc=_IMAGE)]
    change_name: Annotated[str, TaskColumn(sql="d.name", doc=_ORIGIN)]
    change_kind: Annotated[
        str | None,
        TaskColumn(
            sql="d.change_kind",
            exported=True,
            doc="kind of the change ([Tags](guide/mine/tags.md)), not of the task",
        ),
    ]
    candidate: Annotated[str, TaskColumn(sql="d.candidate", doc=_ORIGIN)]
    verification: Annotated[str | None, TaskColumn(sql="d.verification", doc=_ORIGIN)]
    certificate: Annotated[str | None, TaskColumn(sql="d.certificate", doc=_ORIGIN, exported=True)]
    strength: Annotated[
        float | None,
        TaskColumn(
            sql="a.strength",
            exported=True,
            doc="share of the faults in the gold patch that the tests detect, 0 to 1, by the newest "
            "[audit](guide/verify/grade.md#strength); null where it did not measure it",
        ),
    ]
    untested_hunks: Annotated[
        str | None,
        TaskColumn(
            sql="a.untested_hunks",
            exported=True,
            doc="places of the hunks of the gold patch that no test misses, such as `src/cart.py:10-12`, separated by "
            "commas; null as `strength`",
        ),
    ]
    control_bound: Annotated[
        float | None,
        TaskColumn(
            exported=True,
            doc="probability of passing for a submission that solves nothing and chooses among "
            "[the instances](guide/verify/verify.md#negative-controls) of tests by a feature of their values; null "
            "where there are none",
        ),
    ]
    flaky_bound: Annotated[
        float | None,
        TaskColumn(
            sql=None,
            exported=True,
            doc="upper bound of the probability that gold fails in a grading, the end of Wilson's 95 % interval: "
            "3.84 / (n + 3.84) after the n gradings of the [certificate](guide/verify/grade.md), 0.56 after the usual "
            "three; null without one. Pages [show it](guide/verify/grade.md#gradings-of-gold) below 0.1 alone, or "
            "where a grading failed",
        ),
    ]
    underspecified: Annotated[float | None, TaskColumn(sql="j.underspecified", doc=_VERDICT, exported=True)]
    unfair_tests: Annotated[float | None, TaskColumn(sql="j.unfair_tests", doc=_VERDICT, exported=True)]
    set_aside: Annotated[str | None, TaskColumn(sql="j.set_aside", doc=_VERDICT, exported=True)]
    test_seconds: Annotated[float, TaskColumn(doc="seconds of the longest gold run", exported=True)]
    statement_tokens: Annotated[
        int,
        TaskColumn(
            record=lambda task: count_tokens(task.problem_statement),
            exported=True,
            doc="words and signs of the problem statement",
        ),
    ]
    changed_files: Annotated[
        int,
        TaskColumn(
            record=lambda task: task.changed_code.files if task.changed_code else 0,
            sql="CASE WHEN t.changed_files > 0 THEN t.changed_files ELSE c.n_gold_files END",
            doc=_SIZE,
            exported=True,
        ),
    ]
    changed_lines: Annotated[
        int,
        TaskColumn(
            record=lambda task: task.changed_code.lines if task.changed_code else 0,
            sql="CASE WHEN t.changed_files > 0 THEN t.changed_lines ELSE c.gold_lines END",
            doc=_SIZE,
            exported=True,
        ),
    ]
    family: Annotated[
        str,
        TaskColumn(sql="d.name", exported=True, doc="name of the change it comes from: siblings and variants share it"),
    ]
    split: Annotated[
        str,
        TaskColumn(
            record=lambda task: choose_split(task.repo),
            exported=True,
            doc="`train` or `test`, by a hash of the repository's name (nine to one)",
        ),
    ]
    difficulty: Annotated[
        str,
        TaskColumn(
            sql=None,
            exported=True,
            doc="JSON object of pass rates by model and scaffold, `{}` until there are rollouts",
        ),
    ]
    audited: Annotated[
        str | None,
        TaskColumn(
            sql="CASE WHEN a.seq IS NULL THEN NULL WHEN a.clean THEN 'clean' ELSE 'findings' END",
            exported=True,
            doc="`clean` or `findings` by the newest audit, null before the first",
        ),
    ]
    image_digest: Annotated[str, TaskColumn(doc=_IMAGE)]
    added_at: Annotated[str, TaskColumn(doc="when the task was stored")]
    tests: Annotated[
        str,
        TaskColumn(
            exported=True,
            doc="who wrote the tests: `human` or [`model-written`](guide/verify/written-tests.md); the latter are "
            "selected only on request",
        ),
    ]
    worst_block_bound: Annotated[
        float | None,
        TaskColumn(
            record=lambda task: task.worst_block_bound,
            exported=True,
            doc="probability of passing for a submission that solves all FAIL_TO_PASS tests but those of one "
            "[block](guide/verify/verify.md#negative-controls), for the worst block; null for tasks of earlier "
            "versions",
        ),
    ]
    n_weak_tests: Annotated[
        int,
        TaskColumn(
            record=lambda task: len({weak.test for weak in task.weak_tests}),
            exported=True,
            doc="tests in the lists that are [weak evidence](guide/verify/verify.md#weak-tests): skipped without a "
            "package, reported twice, or in a file that asserts nothing",
        ),
    ]
    rests_on_copies: Annotated[
        int,
        TaskColumn(
            record=lambda task: int(task.rests_on_copies),
            doc="1 where `control_bound` is that of an earlier version and [rests on copies]"
            "(guide/verify/verify.md#again) of tests, else 0",
        ),
    ]
    functions: Annotated[
        str | None,
        TaskColumn(
            record=lambda task: join_words(task.changed_code.functions) if task.changed_code else None,
            exported=True,
            doc="functions that the gold patch changes, as `PATH::NAME`, or `PATH` for code outside of any, separated "
            "by commas; null for tasks of earlier versions",
        ),
    ]
    operators: Annotated[
        str | None,
        TaskColumn(
            record=lambda task: join_words(injection.operator for injection in task.injections) or None,
            exported=True,
            doc="how injected bugs were made: mutation operators, `history` or `model-written`, separated by commas; "
            "null for other tasks, and for those of earlier versions",
        ),
    ]
    edit_group: Annotated[
        str | None,
        TaskColumn(
            record=compute_edit_group,
            exported=True,
            doc="key of the tasks of a repository that change the same functions by the same operators; null where "
            "`functions` is",
        ),
    ]
    failing_set: Annotated[
        str | None,
        TaskColumn(
            record=compute_failing_set,
            exported=True,
            doc="key of the tasks of a repository with the same FAIL_TO_PASS tests; null where there are none",
        ),
    ]
    changed_hunks: Annotated[
        int | None,
        TaskColumn(
            record=lambda task: task.changed_code.hunks if task.changed_code else None,
            exported=True,
            doc="hunks of the gold patch; null for tasks of earlier versions",
        ),
    ]
    call_depth: Annotated[
        int | None,
        TaskColumn(
            record=lambda task: task.changed_code.call_depth if task.changed_code else None,
            exported=True,
            doc="calls from the nearest FAIL_TO_PASS test to a changed function, [by names](guide/query/select.md#"
            "variety); null where none was found",
        ),
    ]
    n_findings: Annotated[
        int | None,
        TaskColumn(
            sql="j.n_findings",
            exported=True,
            doc="findings of the verdict, null where there is none ([Judge](guide/verify/judge.md))",
        ),
    ]
    findings: Annotated[
        str | None,
        TaskColumn(
            sql=None,
            exported=True,
            doc="rules of the verdict's findings, separated by commas; null where there is no verdict",
        ),
    ]
    review_form: Annotated[
        str | None,
        TaskColumn(
            record=get_review_form,
            exported=True,
            doc="[form](guide/derive/kinds.md#review) of a review: `before-fix`, `diff`, `cross-file`, `clean` (a "
            "control) or `threads`; null for other kinds",
        ),
    ]
    material_files: Annotated[
        int | None,
        TaskColumn(
            record=lambda task: get_material(task, "files"),
            exported=True,
            doc="files of a review that a model without tools is given: those under review and "
            "[related ones](guide/derive/kinds.md#material); null for other kinds, and for reviews of earlier versions",
        ),
    ]
    material_bytes: Annotated[
        int | None,
        TaskColumn(
            record=lambda task: get_material(task, "n_bytes"),
            exported=True,
            doc="bytes of these files and of the diff under review; null as `material_files`",
        ),
    ]
    review_tree: Annotated[
        str | None,
        TaskColumn(
            record=get_review_tree,
            doc="commit of the [tree](guide/derive/kinds.md#material) that a reviewer may read; null as "
            "`material_files`",
        ),
    ]


# ------------------------------------------------------------------------------------------------------ filters


class Range(NamedTuple):
    """Numbers between two bounds, both included; None leaves an end open."""

    low: float | None = None
    high: float | None = None

    def format(self) -> str:
        """Return `LOW:HIGH`."""
        return ":".join("" if bound is None else f"{bound:.15g}" for bound in self)


Words = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ColumnFilter:
    """Declaration of a filter over the column of its name: by words, or by a `Range` of numbers."""

    help: str
    """Sentence in the help of the option."""
    metavar: str = "LO:HI"
    """Form of its values there."""
    panel: str = MORE
    """Its heading there."""
    choices: Sequence[str] = ()
    """Words that it takes; empty for any."""
    is_list: bool = False
    """Whether values of the column are lists of words (`measures.join_words`): those with any of the words are
    selected, and by `none` those that are empty or null."""
    has_mixed_case: bool = False
    """Whether values of the column have upper case. Others are compared as they are, so that their indices are used."""


@dataclass(frozen=True, kw_only=True)
class ColumnFilters:
    """Filters over a column each, in the order of help; None selects all.

    A filter of words selects tasks that have any of them, ignoring case.
    """

    repo: Annotated[
        Words | str | None,
        ColumnFilter(
            help="Select tasks of these repositories.", metavar="OWNER/NAME[,...]", panel=COMMON, has_mixed_case=True
        ),
    ] = None
    language: Annotated[
        Words | str | None,
        ColumnFilter(
            help="Select tasks in these languages.", metavar="LANGUAGE[,...]", panel=COMMON, has_mixed_case=True
        ),
    ] = None
    kind: Annotated[
        Words | str | None,
        ColumnFilter(help="Select tasks of these kinds.", metavar="KIND[,KIND]", panel=COMMON, choices=tuple(Kind)),
    ] = None
    status: Annotated[
        Words | str | None,
        ColumnFilter(
            help="Select tasks that are derived, certified, rejected, or imported as published.",
            metavar="STATUS[,STATUS]",
            panel=COMMON,
            choices=tuple(TaskStatus),
        ),
    ] = None
    changed_lines: Annotated[
        Range | None, ColumnFilter(help="Select by lines that the gold patch adds or removes.", panel=COMMON)
    ] = None
    strength: Annotated[
        Range | None, ColumnFilter(help="Select by the share of faults that the tests detect.", panel=COMMON)
    ] = None
    source: Annotated[
        Words | str | None,
        ColumnFilter(help="Select tasks of these sources.", metavar="SOURCE[,...]", has_mixed_case=True),
    ] = None
    change_kind: Annotated[
        Words | str | None,
        ColumnFilter(help="Select tasks of changes of these kinds.", metavar="KIND[,KIND]", choices=tuple(ChangeKind)),
    ] = None
    """Any kind of the change, not only its primary kind."""
    license: Annotated[
        Words | str | None,
        ColumnFilter(help="Select tasks under these licences.", metavar="SPDX[,SPDX]", has_mixed_case=True),
    ] = None
    family: Annotated[
        Words | str | None,
        ColumnFilter(help="Select tasks that come from these changes.", metavar="NAME[,NAME]", has_mixed_case=True),
    ] = None
    split: Annotated[
        Words | str | None,
        ColumnFilter(help="Select tasks of this split.", metavar="train|test", choices=("train", "test")),
    ] = None
    audited: Annotated[
        Words | str | None,
        ColumnFilter(
            help="Select by the result of the newest audit.",
            metavar="clean|findings|none",
            choices=("clean", "findings", NEVER),
        ),
    ] = None
    """`clean`, `findings`, or `none` for tasks that were never audited."""
    environment: Annotated[
        Words | str | None,
        ColumnFilter(
            help="Select by environment.",
            metavar="verified|simulated|none|imported",
            choices=("verified", "simulated", "none", "imported"),
        ),
    ] = None
    tests: Annotated[
        Words | str | None,
        ColumnFilter(
            help="Select by who wrote the tests. Default: human.",
            metavar="human|model-written|all",
            choices=(*TestOrigin, ALL),
        ),
    ] = None
    """`human`, `model-written`, or `all`."""
    operators: Annotated[
        Words | str | None,
        ColumnFilter(help="Select tasks with bugs of these operators.", metavar="OPERATOR[,...]", is_list=True),
    ] = None
    findings: Annotated[
        Words | str | None,
        ColumnFilter(
            help="Select tasks whose verdict has findings of these rules, or none.",
            metavar="RULE[,...]|none",
            is_list=True,
        ),
    ] = None
    review_form: Annotated[
        Words | str | None,
        ColumnFilter(help="Select reviews of these forms.", metavar="FORM[,FORM]", choices=get_args(ReviewTarget)),
    ] = None
    changed_files: Annotated[Range | None, ColumnFilter(help="Select by files that the gold patch changes.")] = None
    changed_hunks: Annotated[Range | None, ColumnFilter(help="Select by hunks of the gold patch.")] = None
    material_files: Annotated[
        Range | None, ColumnFilter(help="Select reviews by the files that a model without tools is given.")
    ] = None
    material_bytes: Annotated[
        Range | None, ColumnFilter(help="Select reviews by the bytes of these files and the diff.")
    ] = None
    call_depth: Annotated[
        Range | None, ColumnFilter(help="Select by the calls from a failing test to a changed function.")
    ] = None
    statement_tokens: Annotated[Range | None, ColumnFilter(help="Select by the length of the statement in tokens.")] = (
        None
    )
    test_seconds: Annotated[Range | None, ColumnFilter(help="Select by the seconds of the longest gold run.")] = None
    n_fail_to_pass: Annotated[Range | None, ColumnFilter(help="Select by the number of FAIL_TO_PASS tests.")] = None
    n_pass_to_pass: Annotated[Range | None, ColumnFilter(help="Select by the number of PASS_TO_PASS tests.")] = None
    underspecified: Annotated[
        Range | None, ColumnFilter(help="Select by the judge's probability of a vague statement.")
    ] = None
    unfair_tests: Annotated[Range | None, ColumnFilter(help="Select by the judge's probability of unfair tests.")] = (
        None
    )
    n_findings: Annotated[Range | None, ColumnFilter(help="Select by the number of the judge's findings.")] = None
    n_weak_tests: Annotated[
        Range | None, ColumnFilter(help="Select by the number of tests that are weak evidence.")
    ] = None
    control_bound: Annotated[Range | None, ColumnFilter(help="Select by the odds of a submission that guesses.")] = None
    worst_block_bound: Annotated[
        Range | None,
        ColumnFilter(help="Select by the odds of a submission that guesses the worst test and solves the rest."),
    ] = None
    flaky_bound: Annotated[Range | None, ColumnFilter(help="Select by the bound on the failure rate of gold.")] = None


def get_value_type(declared: Any) -> type:
    """Return the type of a value from that of a column, which may have `| None`."""
    (value,) = [kind for kind in get_args(declared) or (declared,) if kind is not NoneType]
    return value  # type: ignore[no-any-return]


DECLARED: Mapping[str, TaskColumn] = {
    name: annotation.__metadata__[0] for name, annotation in TaskColumns.__annotations__.items()
}
"""Name of a column -> its declaration."""
VALUE_TYPES: Mapping[str, type] = {
    name: get_value_type(annotation.__origin__) for name, annotation in TaskColumns.__annotations__.items()
}
"""Name of a column -> str, int or float."""
NULLABLE = frozenset(
    name for name, annotation in TaskColumns.__annotations__.items() if NoneType in get_args(annotation.__origin__)
)
"""Columns that may be null."""
EXPORTED = tuple(name for name, declared in DECLARED.items() if declared.exported)
"""Columns that rows of exported tasks have."""
_FILTERS = {
    name: (annotation.__metadata__[0], Range in get_args(annotation.__origin__))
    for name, annotation in ColumnFilters.__annotations__.items()
}
WORD_FILTERS: Mapping[str, ColumnFilter] = {
    name: declared for name, (declared, is_range) in _FILTERS.items() if not is_range
}
"""Filters of columns by words."""
RANGE_FILTERS: Mapping[str, ColumnFilter] = {
    name: declared for name, (declared, is_range) in _FILTERS.items() if is_range
}
"""Filters of numeric columns by `LO:HI`."""
