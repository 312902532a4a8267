"""The pages. Each reads the rows that it needs by index and renders a template; none writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from core.errors import InputError
from mergemill.bench.listing import summarize_run, summarize_set
from mergemill.execution.run_status import list_runs
from mergemill.web.context import WebContext
from mergemill.web.diffs import PatchView, render_patch
from mergemill.web.metrics import show_metrics
from mergemill.web.page_streaming import AnswerError, EarlyStart, Page, send_early
from mergemill.web.rendering import format_duration, format_number
from mergemill.web.rollouts import find_stored_rollout
from mergemill.web.statement import mark_source, render_statement
from mergemill.web.task_listing import FACETS, build_facets, build_link, count_values, load_listing, read_parameters
from mergemill.web.trajectories import load_conversation
from mergemill.web.visible_text import remove_ansi_sequences
from taskdb.queries import bench as bench_queries
from taskdb.queries import pages as page_queries
from taskdb.queries import tasks as queries
from taskdb.queries.evidence import SHOWN_BOUND, describe_forger, describe_gold, describe_scores, rank_verdict
from taskdb.queries.trajectories import list_rollouts
from taskdb.records import Certificate, PullRequest, Stage, Task
from taskdb.records.verdicts import QuoteSource, Verdict

ROWS = 50
"""Rows of a page of a list."""
CHANGE_FILTERS = ("source", "repo", "status", "rejected_by", "reason", "language", "change_kind")
"""Columns by which the list of changes is filtered."""
MAX_SHOWN_TESTS = 500
MAX_SHOWN_LOG = 400_000
"""Characters of a log on a page; the whole is its raw text."""
MAX_SHOWN_TURNS = 200
MAX_SHOWN_ROLLOUTS = 200
"""Rollouts of a task that its page lists."""
STAGE_OUTPUTS = {
    Stage.MINE: "candidates",
    Stage.BUILD: "environments",
    Stage.VERIFY: "verified",
    Stage.JUDGE: "judged",
    Stage.DERIVE: "with tasks",
    Stage.CERTIFY: "certified",
}
"""Stage -> the records that passed it, for people."""


def make_routes(context: WebContext, answer_error: AnswerError) -> list[Route]:
    """Return the routes of all pages, which run in threads.

    Args:
        context: the objects that they read.
        answer_error: function that returns the page that shows an error.
    """
    pages: Mapping[str, tuple[Page, EarlyStart | None]] = {
        "/": (show_overview, EarlyStart("overview.html", "overview")),
        "/tasks": (show_tasks, EarlyStart("tasks.html", "tasks")),
        "/tasks/{name:path}": (show_task, None),
        "/funnel": (show_funnel, EarlyStart("funnel.html", "funnel")),
        "/changes": (show_changes, EarlyStart("changes.html", "funnel")),
        "/changes/{name:path}": (show_change, None),
        "/artifacts/{digest}": (show_artifact, None),
        "/rollouts/{rollout}": (show_rollout, None),
        "/bench": (show_benches, EarlyStart("benches.html", "bench")),
        "/bench/{name}": (show_bench, None),
        "/runs": (show_runs, None),
        "/metrics": (show_metrics, None),
    }
    return [
        Route(path, _bind(context, page, start, answer_error), methods=["GET"]) for path, (page, start) in pages.items()
    ]


def _bind(
    context: WebContext, page: Page, start: EarlyStart | None, answer_error: AnswerError
) -> Callable[[Request], Response] | Callable[[Request], Awaitable[Response]]:
    if start is None:
        return partial(page, context)
    return partial(send_early, context, page, start, answer_error)


# ------------------------------------------------------------------------------------------------------- lists


def show_overview(context: WebContext, request: Request) -> Response:
    """Show counts, funnel, the newest tasks and the newest run."""
    del request
    stages = queries.compute_funnel(context.store)
    reasons = _list_reasons(stages)
    values = {
        "active": "overview",
        "stages": _add_shares(stages),
        "reasons": reasons[:8],
        "tasks": load_listing(context, {}, 8).rows,
        "counts": page_queries.count_tasks_by_kind(context.store),
        "runs": list_runs(context.runs)[:1],
        "database": _get_database_name(context.storage.db),
    }
    return context.render("overview.html", values)


def show_tasks(context: WebContext, request: Request) -> Response:
    """Show a page of the list of tasks with its facets."""
    parameters = read_parameters(request)
    listing = load_listing(context, parameters, ROWS, tuple(dict.fromkeys((*queries.LIST_KEYS, *FACETS))))
    counts: Mapping[str, Mapping[str, int | None]]
    if listing.every is None:
        counts = page_queries.count_facets(context.store, listing.filters, FACETS)
    else:
        counts = count_values(listing.every)
    values = {
        "active": "tasks",
        "q": parameters.get("q", ""),
        "listing": listing,
        "facets": build_facets(parameters, counts),
        "chosen": {name: value for name, value in parameters.items() if name not in ("after", "limit") and value},
        "link": partial(build_link, parameters),
        "parameters": parameters,
        "next": build_link(parameters, after=listing.next) if listing.next else None,
    }
    return context.render("tasks.html", values)


def show_funnel(context: WebContext, request: Request) -> Response:
    """Show how many changes passed each stage, with links to the rejected changes."""
    source, repo = request.query_params.get("source"), request.query_params.get("repo")
    stages = queries.compute_funnel(context.store, [source] if source else (), repo or None)
    values = {
        "active": "funnel",
        "stages": _add_shares(stages),
        "outputs": STAGE_OUTPUTS,
        "source": source,
        "repo": repo,
        "n_rejected": sum(sum(row["rejected"].values()) for row in stages),
    }
    return context.render("funnel.html", values)


def show_changes(context: WebContext, request: Request) -> Response:
    """Show a page of the list of changes, such as those rejected for a reason."""
    given = request.query_params
    chosen = {name: given[name] for name in CHANGE_FILTERS if given.get(name)}
    rows = queries.list_changes(context.store, ROWS + 1, given.get("after") or None, **chosen)
    following = {**chosen, "after": rows[ROWS - 1]["name"]} if len(rows) > ROWS else None
    values = {"active": "funnel", "chosen": chosen, "rows": rows[:ROWS], "following": following, "link": _link_changes}
    return context.render("changes.html", values)


def _link_changes(parameters: Mapping[str, str], without: str | None = None) -> str:
    kept = {name: value for name, value in parameters.items() if name != without}
    return build_link(kept).replace("/tasks", "/changes", 1)


def show_runs(context: WebContext, request: Request) -> Response:
    """Show the progress of runs; the page's script keeps it up to date."""
    del request
    return context.render("runs.html", {"active": "runs", "runs": list_runs(context.runs), "states": list(Stage)})


def show_benches(context: WebContext, request: Request) -> Response:
    """Show all frozen sets, newest first, and the runs on them."""
    del request
    sets = {bench_set.id: bench_set for bench_set in bench_queries.list_sets(context.store)}
    runs = bench_queries.list_runs(context.store)
    values = {
        "active": "bench",
        "sets": [
            summarize_set(bench_set) | {"runs": sum(run.parent == key for run in runs)}
            for key, bench_set in reversed(sets.items())
        ],
        "runs": [summarize_run(run, sets[run.parent]) | {"parent": run.parent} for run in runs],
    }
    return context.render("benches.html", values)


# --------------------------------------------------------------------------------------------------- one record


def show_bench(context: WebContext, request: Request) -> Response:
    """Show a frozen set with the reports of its runs."""
    # The libraries of its statistics are loaded for this page alone.
    from mergemill.web import bench_page  # noqa: PLC0415

    return bench_page.show_bench(context, request)


def show_task(context: WebContext, request: Request) -> Response:
    """Show a task with everything known of it."""
    task, details = queries.look_up_task(context.store, context.artifacts, request.path_params["name"])
    records = page_queries.load_task_records(context.store, task)
    row = page_queries.load_task_row(context.store, task) or {}
    quotes = [finding.quote for finding in _get_findings(records.verdict, QuoteSource.STATEMENT)]
    values = {
        "active": "tasks",
        "task": task,
        "row": row,
        "status": details["status"],
        "records": records,
        "rollouts": list_rollouts(context.store, task.id)[:MAX_SHOWN_ROLLOUTS],
        "findings": records.verdict.findings if records.verdict else (),
        "scores": _describe_verdict(context, records.verdict),
        "statement": render_statement(task.problem_statement, quotes),
        "source": mark_source(task.problem_statement, quotes),
        "patches": _render_patches(task, details),
        "oracle": task.oracle.model_dump(mode="json") if task.oracle else None,
        "controls": frozenset(task.controls),
        "max_tests": MAX_SHOWN_TESTS,
        "tags": details["tags"],
        "facts": _collect_facts(row, task, records.certificate),
    }
    return context.render("task.html", values)


def _render_patches(task: Task, details: Mapping[str, Any]) -> list[tuple[str, str, PatchView]]:
    """Return (title, artifact, patch) for every patch of a task that has lines."""
    patches = (
        ("Setup patch", task.setup_patch, details["setup_patch"]),
        ("Gold patch", task.gold_patch, details["patch"]),
        ("Test patch", task.test_patch, details["test_patch"]),
    )
    return [(title, digest, render_patch(text)) for title, digest, text in patches if digest and text]


def _collect_facts(row: Mapping[str, Any], task: Task, certificate: Certificate | None) -> list[tuple[str, str, str]]:
    """Return (title, text, explanation) of the measures of a task that are known."""
    facts = []
    if (strength := row.get("strength")) is not None:
        explanation = "Share of faults in the gold patch that the tests detect, as an audit measured"
        facts.append(("Strength", format_number(strength), explanation))
    if (odds := describe_forger(task)) is not None:
        explanation = (
            "Probability of passing for a submission that guesses which instances of tests are true, and for one that "
            "solves all but the tests of one block"
        )
        facts.append(("Forger passes", odds, explanation))
    if certificate:
        explanation = (
            "Gradings of the certificate in which the gold patch earned 1. A 95 % bound on its failures is shown when "
            f"one failed, or when enough were made for a bound below {SHOWN_BOUND:g}"
        )
        facts.append(("Gold passed", describe_gold(certificate.gold), explanation))
    return [*facts, ("Test time", format_duration(task.test_seconds), "Seconds of the longest gold run")]


def _describe_verdict(context: WebContext, verdict: Verdict | None) -> Mapping[str, str]:
    """Return the probabilities of a verdict that have evidence, and the ranks of the others, as text."""
    if verdict is None:
        return {}
    data = verdict.model_dump(mode="json")
    return describe_scores(data, rank_verdict(context.store, data))


def _get_findings(verdict: Verdict | None, source: QuoteSource) -> list[Any]:
    return [finding for finding in verdict.findings if finding.quote_source is source] if verdict else []


def show_change(context: WebContext, request: Request) -> Response:
    """Show every stage, attempt and rejection of a change."""
    change, report = queries.look_up_change(context.store, request.path_params["name"])
    records = page_queries.load_change_records(context.store, change)
    values = {
        "active": "funnel",
        "change": change,
        "report": report,
        "records": records,
        "body": render_statement(change.problem_statement or change.body),
        "logs": _list_logs(records),
        "forge": _build_forge_link(change),
    }
    return context.render("change.html", values)


def _list_logs(records: page_queries.ChangeRecords) -> list[tuple[str, str]]:
    """Return (title, artifact) of the logs of a change."""
    logs: list[tuple[str, str | None]] = []
    if records.rejection:
        logs.append((f"rejection by {records.rejection.stage}", records.rejection.log))
    if records.environment:
        logs.append(("build of the environment", records.environment.log))
    if records.verification:
        logs += [(f"{run.variant} run, seed {run.seed}", run.log) for run in records.verification.runs]
    return [(title, digest) for title, digest in logs if digest]


def _build_forge_link(change: PullRequest) -> str | None:
    """Return the address of a pull request on GitHub."""
    is_github = change.source.startswith("github:") and change.number is not None
    return f"https://github.com/{change.repo}/pull/{change.number}" if is_github else None


def show_artifact(context: WebContext, request: Request) -> Response:
    """Show a log or a patch; `?raw` gives its bytes as text."""
    digest = request.path_params["digest"]
    # The name becomes part of a file's path, so nothing but digits of a hash may pass.
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise InputError("an artifact is named by 64 hex digits")
    if "raw" in request.query_params:
        content = context.artifacts.get(digest)
        # A log holds the output of programs from elsewhere, and a browser must not run anything in it.
        return PlainTextResponse(content, headers={"content-security-policy": "sandbox"})
    text = remove_ansi_sequences(context.artifacts.get_text(digest))
    shown = text if len(text) <= MAX_SHOWN_LOG else f"{text[: MAX_SHOWN_LOG // 2]}\n⋯\n{text[-MAX_SHOWN_LOG // 2 :]}"
    values = {"digest": digest, "text": shown, "n_characters": len(text), "is_cut": shown is not text}
    return context.render("artifact.html", values)


def show_rollout(context: WebContext, request: Request) -> Response:
    """Show a rollout of the database, or a file of the folder of rollouts, as a conversation."""
    word = request.path_params["rollout"]
    stored = find_stored_rollout(context.store, context.artifacts, word)
    conversation = stored.conversation if stored else load_conversation(context.rollouts, word)
    given = request.query_params.get("from", "0")
    # Python refuses to convert texts of thousands of digits.
    start = min(int(given), len(conversation.turns)) if given.isdecimal() and len(given) < 9 else 0
    end = start + MAX_SHOWN_TURNS
    values = {
        "active": "tasks",
        "conversation": conversation,
        "stored": stored,
        "turns": conversation.turns[start:end],
        "earlier": max(0, start - MAX_SHOWN_TURNS) if start else None,
        "later": end if end < len(conversation.turns) else None,
    }
    return context.render("rollout.html", values)


# ------------------------------------------------------------------------------------------------------- parts


def _add_shares(stages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the stages with `width` and `passed`: percent of all mined changes that came in and went out."""
    first = max(1, stages[0]["in"]) if stages else 1
    return [
        {
            **row,
            "width": round(100 * row["in"] / first, 2),
            "passed": round(100 * row["out"] / first, 2),
            "reasons": [
                {"reason": reason, "n": n, "width": round(100 * n / max(1, *row["rejected"].values()), 1)}
                for reason, n in row["rejected"].items()
            ],
        }
        for row in stages
    ]


def _list_reasons(stages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the reasons of all stages, most frequent first."""
    reasons = [
        {"stage": row["stage"], "reason": reason, "n": n} for row in stages for reason, n in row["rejected"].items()
    ]
    most = max((reason["n"] for reason in reasons), default=1)
    return [
        {**reason, "width": round(100 * reason["n"] / most, 1)} for reason in sorted(reasons, key=lambda row: -row["n"])
    ]


def _get_database_name(url: str) -> str:
    """Return the name of a database: the last part of its URL, without folders, hosts and passwords."""
    return url.partition("?")[0].rpartition("/")[2]
