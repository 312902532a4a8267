"""From certified tasks to an SFT data set by one command: rollouts of real programs, rejection sampling, export.

    python -m benchmarks.data_set --db DATABASE --out DIR [--only TASK,..] [--scaffold S,..] [--character C,..]
        [--page PAGE] [--effects PAGE]

No model is needed: a scripted one plays characters, one for each model name, on every task with each scaffold. It
prints what the rollouts earned, what each rule of rejection sampling left and refused alone, and the rows of the data
set. Some characters earn a reward in a way that nobody should learn (CHARACTERS); the exit code is 1 where the rules
let one of these through. `--page` writes a table of scaffolds and tasks for each character, `--effects` what the
rollouts of each character earned and the rules refused.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.page_table import write_table

Commands = list[str]
SCAFFOLDS = "mini-swe-agent,claude-code,codex"
STORED = "SELECT name AS task, scaffold, model, reason, value, requests, seconds FROM rollouts ORDER BY at"
"""Query of all rollouts, those of an earlier command that was interrupted among them."""


@dataclass(frozen=True, kw_only=True)
class Character:
    """One way to behave. `play`: gold patch -> commands; `is_taught`: whether its rollouts belong into the data set."""

    play: Callable[[str], Commands]
    is_taught: bool


def apply_patch(patch: str) -> str:
    """Return the command that applies a patch."""
    return f"git apply <<'END_OF_PATCH'\n{patch.rstrip(chr(10))}\nEND_OF_PATCH"


LOOK = ["git log --oneline | head -n 3", "ls", "git status --short"]
CHARACTERS: Mapping[str, Character] = {
    "careful": Character(play=lambda gold: [*LOOK, apply_patch(gold), "git diff --stat"], is_taught=True),
    "quick": Character(play=lambda gold: [apply_patch(gold)], is_taught=True),
    "lucky": Character(
        play=lambda gold: [*(f"cat no-such-file-{n}" for n in range(3)), apply_patch(gold), "false", "ls"],
        is_taught=False,
    ),
    "stubborn": Character(play=lambda gold: [*["git status"] * 5, apply_patch(gold)], is_taught=False),
    "circling": Character(play=lambda gold: [*["ls -a", "pwd", "date +%Y"] * 4, apply_patch(gold)], is_taught=False),
    "prying": Character(
        play=lambda gold: ["ls", "git fsck --lost-found; true", apply_patch(gold), "ls"], is_taught=False
    ),
    "lazy": Character(play=lambda _: [*LOOK], is_taught=False),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 1 where a rule let through what it should refuse."""
    options = parse_options(arguments)
    characters = options.character.split(",")
    tasks = read_tasks(options)
    # the scripted server and its player of shell commands are those of the tests
    from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn  # noqa: PLC0415
    from tests.samplers.shell_player import ShellPlayer  # noqa: PLC0415

    players = {
        name: ShellPlayer({match: CHARACTERS[name].play(gold) for match, gold in tasks.items()}) for name in characters
    }

    def answer(request: ModelRequest) -> Turn:
        return players[request.body["model"]](request)

    rollouts: list[dict[str, Any]] = []
    with ScriptedModel(answer) as model:
        for name in characters:
            rollouts += sample(options, name, model.url)
    selected = run_mergemill(options, "trajectories", "select", "--json")
    exported = run_mergemill(
        options, "trajectories", "export", "--format", "messages", "--out", str(options.out), "--json"
    )
    if options.page:
        stored = run_mergemill(options, "sql", STORED, "--json")
        tables = (
            render_table(name, [rollout for rollout in stored if rollout["model"] == name]) for name in characters
        )
        write_table(options.page, "benchmarks.data_set", "\n".join(tables))
    kept = Counter(row["model"] for row in run_mergemill(options, "trajectories", "list", "--selected", "--json"))
    if options.effects:
        stored = run_mergemill(options, "sql", STORED, "--json")
        write_table(options.effects, "benchmarks.data_set", render_effects(stored, kept, selected))
    return print_report(rollouts, selected, exported, kept)


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.data_set")
    parser.add_argument("--db", required=True, help="database with certified tasks; rollouts are added to it")
    parser.add_argument("--out", type=Path, required=True, help="new folder of the data set")
    parser.add_argument(
        "--only", help="names of tasks, comma-separated; all certified bug fixes and features by default"
    )
    parser.add_argument("--scaffold", default=SCAFFOLDS)
    parser.add_argument("--character", default=",".join(CHARACTERS))
    parser.add_argument("--workers", default="2")
    parser.add_argument(
        "--page", type=Path, help="page for a table of scaffolds and tasks, such as docs/guide/agents/scaffolds.md"
    )
    parser.add_argument(
        "--effects", type=Path, help="page for a table of rules, such as docs/guide/agents/selection.md"
    )
    return parser.parse_args(arguments)


def run_mergemill(options: argparse.Namespace, *words: str) -> list[dict[str, Any]]:
    """Run a command of mergemill on the database and return its lines of JSON."""
    command = [sys.executable, "-c", "from mergemill.cli import main; main()", *words, "--db", options.db]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def read_tasks(options: argparse.Namespace) -> dict[str, str]:
    """Return regular expression that fits the whole statement of a task -> its gold patch.

    A line of it is not enough: the first of two statements may be `Bug fixes:`, and some programs show a change log.
    Qwen Code puts a blank before an `@`.
    """
    listed = run_mergemill(options, "tasks", "list", "--status", "certified", "--kind", "bugfix,feature", "--json")
    names = options.only.split(",") if options.only else [row["name"] for row in listed]
    tasks = {}
    for name in names:
        (task,) = run_mergemill(options, "tasks", "show", name, "--json")
        statement = json.dumps(task["problem_statement"].strip(), ensure_ascii=False)[1:-1]
        tasks[re.escape(statement).replace("@", " ?@")] = task["patch"]
    options.only = ",".join(names)
    return tasks


def sample(options: argparse.Namespace, character: str, url: str) -> list[dict[str, Any]]:
    """Return the events of the rollouts of one character."""
    where = ("--only", options.only, "--scaffold", options.scaffold, "--workers", options.workers)
    events = run_mergemill(options, "sample", "--json", "--model", character, "--upstream", url, *where)
    return [event for event in events if event["event"] == "rollout"]


def render_table(character: str, rollouts: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of a character: for each scaffold and task its value, requests and seconds."""
    tasks = sorted({rollout["task"] for rollout in rollouts})
    cells = {(rollout["scaffold"], rollout["task"]): format_cell(rollout) for rollout in rollouts}
    names = [task.partition("__")[2].rpartition(".")[0] for task in tasks]
    lines = [f"| {character} | {' | '.join(names)} |", f"|---|{'---|' * len(tasks)}"]
    for scaffold in sorted({rollout["scaffold"] for rollout in rollouts}):
        row = " | ".join(cells.get((scaffold, task), "-") for task in tasks)
        lines.append(f"| `{scaffold}` | {row} |")
    return "\n".join(lines) + "\n"


def format_cell(rollout: Mapping[str, Any]) -> str:
    """Return what one rollout came to; a last result that is none has its reason."""
    if rollout["value"] is None:
        return str(rollout["reason"])
    end = "" if rollout["reason"] is None else f", {rollout['reason']}"
    return f"{rollout['value']:g}, {rollout['requests']} requests, {rollout['seconds']:.0f} s{end}"


def render_effects(
    rollouts: Sequence[Mapping[str, Any]], kept: Mapping[str, int], selected: Sequence[Mapping[str, Any]]
) -> str:
    """Return two tables: what the rollouts of each character came to, and what each rule of selection did."""
    lines = ["| character | teaches | rollouts | of value 1 | selected |", "|---|---|---:|---:|---:|"]
    for name, number in sorted(Counter(rollout["model"] for rollout in rollouts).items()):
        full = sum(rollout["value"] == 1.0 for rollout in rollouts if rollout["model"] == name)
        teaches = "yes" if CHARACTERS[name].is_taught else "no"
        lines.append(f"| {name} | {teaches} | {number} | {full} | {kept.get(name, 0)} |")
    lines += ["", "| rule | before | after | refused by it alone |", "|---|---:|---:|---:|"]
    lines += [
        f"| `{effect['rule']}` | {effect['before']} | {effect['after']} | {effect['alone']} |"
        for effect in selected
        if effect["event"] == "rule"
    ]
    return "\n".join(lines) + "\n"


def print_report(
    rollouts: Sequence[Mapping[str, Any]],
    selected: Sequence[Mapping[str, Any]],
    exported: Sequence[Mapping[str, Any]],
    kept: Mapping[str, int],
) -> int:
    """Print what happened to the rollouts and return the exit code."""
    print(f"{len(rollouts)} rollouts:")
    outcomes = Counter((rollout["model"], rollout["status"], rollout["value"]) for rollout in rollouts)
    for (character, status, value), number in sorted(outcomes.items(), key=str):
        print(f"  {character:10} {status:14} value {value}  {number}")
    print("rejection sampling:")
    for row in selected:
        print(f"  {json.dumps(row)}")
    print(f"data set: {json.dumps(exported[-1])}")
    wrong = sorted(name for name in kept if not CHARACTERS[name].is_taught)
    print(f"selected by character: {dict(kept)}; let through wrongly: {wrong or 'none'}")
    return 1 if wrong or not kept else 0


if __name__ == "__main__":
    sys.exit(main())
