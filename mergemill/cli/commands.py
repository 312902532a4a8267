"""Table of all commands: name, module, summary and panel. `mergemill --help` is printed from it alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class CommandEntry:
    """A command. Its module holds `app`, a typer application with a command or a group of them."""

    module: str
    summary: str
    """Also the first line of the command's own help."""
    panel: str
    """Heading under which `mergemill --help` lists the command."""

    @property
    def resumes(self) -> bool:
        """Whether the command, when it was interrupted, continues where it stopped."""
        return self.panel == PIPELINE or self.module in (
            "agents.sample",
            "bench.run",
            "bench.regrade",
            "bench.score",
            "simulation.simulate",
            "worlds.import_worlds",
        )

    @property
    def members(self) -> Mapping[str, CommandEntry]:
        """Commands of a group whose commands have modules of their own."""
        return GROUPS.get(self.module, {})


PIPELINE = "Pipeline"
SOURCES = "Sources"
QUERIES = "Queries"
TASKS = "Tasks"
AGENTS = "Agents"
MACHINE = "Machine"

COMMANDS: Mapping[str, CommandEntry] = {
    "run": CommandEntry("pipeline.run", "Run every stage that has something to do: mine to certify.", PIPELINE),
    "mine": CommandEntry("pipeline.mine", "Read changes from sources and select the candidates among them.", PIPELINE),
    "build": CommandEntry("pipeline.build", "Build an environment for each candidate that has none.", PIPELINE),
    "verify": CommandEntry(
        "pipeline.verify", "Run the tests of each environment with and without the gold patch.", PIPELINE
    ),
    "judge": CommandEntry(
        "pipeline.judge", "Judge whether each problem statement is sufficient for its tests.", PIPELINE
    ),
    "derive": CommandEntry(
        "pipeline.derive", "Derive tasks from each verified change, or from each environment.", PIPELINE
    ),
    "certify": CommandEntry(
        "pipeline.certify", "Certify each task: gold scores 1 in every run, the no-op 0.", PIPELINE
    ),
    "repos": CommandEntry("pipeline.repos", "Rank repositories by how many tasks they are likely to give.", SOURCES),
    "tags": CommandEntry("pipeline.tags", "Classify the texts of a file by kind of change.", SOURCES),
    "tasks": CommandEntry("queries.tasks", "List, show, search and count tasks.", QUERIES),
    "funnel": CommandEntry(
        "queries.funnel", "Count how many changes passed each stage, and why the others did not.", QUERIES
    ),
    "why": CommandEntry("queries.why", "Show every stage, attempt and rejection of one change.", QUERIES),
    "serve": CommandEntry("operations.serve", "Serve web pages and an HTTP API of the database.", QUERIES),
    "sql": CommandEntry("queries.sql", "Run one read-only SQL query.", QUERIES),
    "export": CommandEntry("bundles.export", "Write tasks as a bundle in another tool's format.", TASKS),
    "bundle": CommandEntry("bundles.bundle", "Verify, certify and import bundles.", TASKS),
    "sample": CommandEntry(
        "agents.sample", "Run agents on tasks or scenarios and store each rollout with its reward.", AGENTS
    ),
    "grade": CommandEntry("grading.grade", "Grade one submission, or a file of them, each in fresh containers.", TASKS),
    "audit": CommandEntry("grading.audit", "Check tasks or bundles for leaks, exploits and weak tests.", TASKS),
    "gateway": CommandEntry(
        "agents.gateway", "Record the requests of agents to a model, in front of its server.", AGENTS
    ),
    "trajectories": CommandEntry("agents.trajectories", "List, show, select and export what agents did.", AGENTS),
    "difficulty": CommandEntry("agents.difficulty", "Show pass rates by task, model and scaffold.", AGENTS),
    "bench": CommandEntry("bench", "Freeze sets of subjects, run agents on them, and report with intervals.", AGENTS),
    "simulate": CommandEntry(
        "simulation.simulate", "Let a model play users and tools, and write training data.", AGENTS
    ),
    "worlds": CommandEntry(
        "worlds", "Make tool environments as programs, with scenarios and checks, and look at them.", AGENTS
    ),
    "explore": CommandEntry(
        "explore", "Index corpora and make long-horizon questions over them, with one supported answer each.", AGENTS
    ),
    "db": CommandEntry("operations.db", "Take care of the task database.", MACHINE),
    "images": CommandEntry("operations.images", "Manage base and environment images.", MACHINE),
    "gc": CommandEntry(
        "operations.leftovers", "Remove what killed processes left: containers, folders and files.", MACHINE
    ),
    "status": CommandEntry(
        "operations.status", "Show what runs where, the queue, rates, failures, disk and engine.", MACHINE
    ),
    "skills": CommandEntry("operations.skills", "List and check skills, the known fixes for failing builds.", MACHINE),
    "doctor": CommandEntry(
        "operations.doctor", "Check this machine's requirements and name the command that fixes each.", MACHINE
    ),
}

WORLD_COMMANDS: Mapping[str, CommandEntry] = {
    "discover": CommandEntry(
        "worlds.discover", "Infer themes for worlds from seed tasks, and choose among them.", PIPELINE
    ),
    "build": CommandEntry("worlds.build", "Let a model write a world for each theme that has none.", PIPELINE),
    "assess": CommandEntry("worlds.assess", "Assess each world by gates, and by a tester and a checker.", PIPELINE),
    "scenarios": CommandEntry(
        "worlds.scenarios", "Write scenarios of certified worlds and prove that each can be solved.", PIPELINE
    ),
    "run": CommandEntry("worlds.run", "Run every step that has something to do: discover to scenarios.", PIPELINE),
    "list": CommandEntry("worlds.list_worlds", "List worlds by name.", QUERIES),
    "show": CommandEntry(
        "worlds.show",
        "Show one world with certificate, tools and scenarios, or one scenario with task, checks and solution.",
        QUERIES,
    ),
    "why": CommandEntry("worlds.why", "Show where a seed task, theme, world or scenario went, and why.", QUERIES),
    "saturation": CommandEntry(
        "worlds.saturation",
        "Show how many new tools, rules and sequences of calls a further world adds, as the number of worlds grows.",
        QUERIES,
    ),
    "serve": CommandEntry("worlds.serve", "Serve worlds over HTTP and MCP: reset, step, state, evaluate.", AGENTS),
    "import": CommandEntry(
        "worlds.import_worlds", "Read worlds and scenarios of EnvScaler's files, and run all gates on them.", TASKS
    ),
    "export": CommandEntry("worlds.export", "Write worlds and their scenarios as a bundle for other programs.", TASKS),
}
"""Commands of `mergemill worlds`, in the order of its help."""

BENCH_COMMANDS: Mapping[str, CommandEntry] = {
    "freeze": CommandEntry(
        "bench.freeze",
        "Freeze certified tasks or scenarios as a set, with hashes of everything that decides their grading.",
        TASKS,
    ),
    "run": CommandEntry("bench.run", "Run scaffolds and a model on each subject of a set, k times.", AGENTS),
    "score": CommandEntry(
        "bench.score",
        "Score submissions of others to a set, or stored runs by metrics that need a judge or runs of tests.",
        AGENTS,
    ),
    "regrade": CommandEntry(
        "bench.regrade", "Grade the stored submissions of runs again, by the present version of the grader.", AGENTS
    ),
    "judge": CommandEntry(
        "bench.judge",
        "Calibrate the judge of findings on labelled findings, and store the result, which reports name from then on.",
        AGENTS,
    ),
    "report": CommandEntry(
        "bench.report",
        "Report runs of a set: averages with 95 % intervals over families, bounds, differences.",
        QUERIES,
    ),
    "import": CommandEntry(
        "bench.import_set", "Make a held-out set of review tasks of a published benchmark of reviews.", TASKS
    ),
    "export": CommandEntry(
        "bench.export_set", "Write a set with its subjects, and the results and report of its runs, to a folder.", TASKS
    ),
    "list": CommandEntry("bench.list_sets", "List sets, or the newest state of each run.", QUERIES),
    "show": CommandEntry(
        "bench.show", "Show a set: its subjects, limits and canary, and which subjects have changed since.", QUERIES
    ),
}
"""Commands of `mergemill bench`, in the order of its help."""

EXPLORE_COMMANDS: Mapping[str, CommandEntry] = {
    "corpus": CommandEntry(
        "explore.corpus", "Index a folder, rows of pages, or the mined changes of the database as a corpus.", SOURCES
    ),
    "run": CommandEntry("explore.run", "Run every step that has something to do: walk, write, gate, evolve.", PIPELINE),
    "walk": CommandEntry("explore.walk", "Let a model walk over a corpus from each seed and note facts.", PIPELINE),
    "write": CommandEntry("explore.write", "Let a model write a question for each walk that has none.", PIPELINE),
    "evolve": CommandEntry(
        "explore.evolve", "Make the next round of each question: clues are removed, blurred or replaced.", PIPELINE
    ),
    "gate": CommandEntry(
        "explore.gate", "Assess each question by programs, judges, solvers and the search for other answers.", PIPELINE
    ),
    "search": CommandEntry(
        "explore.search", "Show the pages of a corpus that fit a query best, with a snippet of each.", QUERIES
    ),
    "browse": CommandEntry(
        "explore.browse", "Show a page of a corpus, or the passages of it that fit a query best, verbatim.", QUERIES
    ),
    "list": CommandEntry("explore.list_questions", "List questions by name, or walks or corpora.", QUERIES),
    "show": CommandEntry(
        "explore.show",
        "Show a question with its clues, certificate, rivals and the rounds of its walk; of a walk its best question.",
        QUERIES,
    ),
    "why": CommandEntry("explore.why", "Show where a seed, walk or question went, and why.", QUERIES),
    "export": CommandEntry("explore.export", "Write the best certified question of each walk as rows.", TASKS),
    "import": CommandEntry(
        "explore.import_questions", "Read rows of questions of a corpus; they wait for the gates.", TASKS
    ),
}
"""Commands of `mergemill explore`, in the order of its help."""

GROUPS: Mapping[str, Mapping[str, CommandEntry]] = {
    "worlds": WORLD_COMMANDS,
    "bench": BENCH_COMMANDS,
    "explore": EXPLORE_COMMANDS,
}
"""Module of a group -> its commands, which have modules of their own."""


def find_entry(arguments: Sequence[str]) -> CommandEntry | None:
    """Return the entry of the command that arguments invoke; None where there is none."""
    entry, entries = None, COMMANDS
    for word in arguments:
        if word in entries:
            entry = entries[word]
            entries = entry.members
    return entry
