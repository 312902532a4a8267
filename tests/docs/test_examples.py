"""The examples of the documentation are run, page by page, in the order they stand there.

In a ```console block each line that begins with `$ ` is a command; one that ends with `# exit N` must exit with N, the
others with 0. Lines below a command are its output and must be equal to it, where `...` stands for any text. The
commands of a page share a folder `ada` with a sample repository `greet`, so changes have names such as `ada__greet-3`.
Pages whose commands need an engine carry `<!-- needs: docker -->`, those that need bubblewrap the same with its name.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from textwrap import dedent

import pytest

from tests.cli import CommandResult, run_command
from tests.command_server import KEPT_RUNS, SHORT_CERTIFICATES, start_command_server
from tests.namespaces import require_bubblewrap
from tests.sample import make_sample

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
NEEDS_DOCKER = "<!-- needs: docker -->"
NEEDS_BUBBLEWRAP = "<!-- needs: bubblewrap -->"
SLOW_PAGES = (
    "docs/guide/query/bundle.md",
    "docs/guide/query/export.md",
    "docs/guide/agents/rollouts.md",
    "docs/guide/worlds/world-bundles.md",
    "docs/start/how-to/grade.md",
    "docs/start/how-to/disk.md",
)
"""Pages whose commands the tests of the commands and the other pages run in every run of the tests, too."""
WITHOUT_COMMANDS = ("docs/adr/", "CONTRIBUTING.md")
"""Decisions have no commands; CONTRIBUTING's walk-through is run by tests/languages/test_one_more.py."""


@dataclass(frozen=True)
class Example:
    """A command of a page, the exit code it must have, and the output shown below it, empty for none."""

    command: str
    exit_code: int
    output: str


def name_page(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def parse_examples(page: Path) -> list[Example]:
    """Return a page's examples in their order."""
    examples = []
    for block in re.findall(r"^([ ]*```console\n.*?^[ ]*```)", page.read_text(), re.MULTILINE | re.DOTALL):
        for part in re.split(r"(?m)^\$ ", dedent(block).split("\n", 1)[1].rsplit("```", 1)[0])[1:]:
            line, _, output = part.partition("\n")
            command, _, comment = line.partition("  # exit ")
            examples.append(Example(command, int(comment or 0), output.strip("\n")))
    return examples


def matches_output(expected: str, actual: str) -> bool:
    """Return whether output is as a page shows it; blanks at the ends of lines do not count."""
    wanted = "\n".join(line.rstrip() for line in expected.splitlines())
    given = "\n".join(line.rstrip() for line in actual.strip("\n").splitlines())
    return re.fullmatch(".*?".join(re.escape(part) for part in wanted.split("...")), given, re.DOTALL) is not None


def run_example(command: str, folder: Path) -> CommandResult:
    """Run a line of a page in Bash; a `mergemill` command or a module alone needs no shell and no new Python."""
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "MERGEMILL_SOURCE": str(ROOT),
        "COLUMNS": "200",
        "MERGEMILL_STRENGTH_RUNS": "5",
        "MERGEMILL_CERTIFY_EXPLOITS": "off",  # they would double the time; a page that shows them asks for them
        "MERGEMILL_REPEATS": "1",  # as in tests of commands
        SHORT_CERTIFICATES: "yes",
        KEPT_RUNS: "yes",  # many pages process the same changes
    }
    if words := split_plain_command(command):
        return run_command(words[1:], folder, environment)
    if redirected := split_redirected_command(command):
        words, path = redirected
        with (folder / path).open("wb") as output:
            return run_command(words[1:], folder, environment, output.fileno())
    if (module := split_module_command(command)) and (
        ended := start_command_server().run(
            module.arguments, ROOT if module.in_source else folder, environment, module=module.name
        )
    ):
        return CommandResult(*ended)
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return CommandResult(done.returncode, done.stdout, done.stderr)


def split_plain_command(command: str) -> list[str]:
    """Return the words of a `mergemill` command in which a shell has nothing to do but split it; none for others."""
    unquoted = re.sub(r'"[^"$`\\]*"|\'[^\']*\'', "", command)
    is_plain = command.startswith("mergemill ") and re.fullmatch(r"[\w./:=,@%+ -]+", unquoted)
    return shlex.split(command) if is_plain else []


def split_redirected_command(command: str) -> tuple[list[str], str] | None:
    """Return the words of `mergemill ARGUMENTS > FILE`, and the file; None for other commands."""
    words, _, path = command.rpartition(" > ")
    return (plain, path) if re.fullmatch(r"[\w./-]+", path) and (plain := split_plain_command(words)) else None


@dataclass(frozen=True)
class ModuleCommand:
    """A module that runs as a program, in the current folder or in that of the source."""

    name: str
    arguments: list[str]
    in_source: bool


def split_module_command(command: str) -> ModuleCommand | None:
    """Return the parts of `[cd "$MERGEMILL_SOURCE" &&] python -m MODULE ARGUMENTS`; None for other commands."""
    rest = command.removeprefix('cd "$MERGEMILL_SOURCE" && ')
    if not re.fullmatch(r"python -m [\w./:=,@%+ -]+", rest):
        return None
    name, *arguments = rest.split()[2:]
    return ModuleCommand(name, arguments, in_source=rest != command)


@dataclass
class SharedStarts:
    """Folders as they are after commands with which several pages begin.

    Each is copied to the same place for one page after the other, as records hold the path of the repository.
    """

    folder: Path
    results: dict[str, CommandResult] = field(default_factory=dict)
    """Command -> its result."""

    def open_folder(self, command: str) -> tuple[Path, CommandResult]:
        """Return a folder in which a command was run, for a single page, and the result of the command."""
        kept, place = self.folder / f"kept-{len(self.results)}", self.folder / "page" / "ada"
        if place.exists():
            shutil.rmtree(place)
        if command in self.results:
            kept = self.folder / f"kept-{list(self.results).index(command)}"
            shutil.copytree(kept, place, symlinks=True)
        else:
            make_sample(place / "greet")
            done = run_example(command, place)
            shutil.copytree(place, kept, symlinks=True)
            self.results[command] = done
        return place, self.results[command]


@pytest.fixture(scope="session")
def shared_starts(tmp_path_factory: pytest.TempPathFactory) -> SharedStarts:
    return SharedStarts(tmp_path_factory.mktemp("starts"))


@cache
def count_starts() -> Counter[str]:
    """Return how many pages begin with a command, for `mergemill` commands."""
    starts = [examples[0].command for page in PAGES if has_commands(page) and (examples := parse_examples(page))]
    return Counter(command for command in starts if split_plain_command(command))


def run_page(page: Path, starts: SharedStarts, fresh: Path) -> None:
    """Run the commands of a page.

    Args:
        page: file of the page.
        starts: folders of commands with which other pages begin as well.
        fresh: empty folder for the commands of a page that begins differently.
    """
    examples = parse_examples(page)
    if not examples:
        return
    folder, first = fresh / "ada", None
    if count_starts()[examples[0].command] > 1:
        folder, first = starts.open_folder(examples[0].command)
    else:
        make_sample(folder / "greet")
    for number, example in enumerate(examples):
        done = first if first and number == 0 else run_example(example.command, folder)
        what = f"{page.name}: {example.command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        assert done.exit_code == example.exit_code, what
        if example.output:
            assert matches_output(example.output, done.stdout), f"{what}\nnot as shown:\n{example.output}"


def has_commands(page: Path) -> bool:
    return not name_page(page).startswith(WITHOUT_COMMANDS)


@pytest.mark.parametrize("page", [page for page in PAGES if has_commands(page)], ids=name_page)
def test_every_page_has_a_command_that_is_run(page: Path) -> None:
    assert parse_examples(page), f"{name_page(page)} has no ```console block"


@pytest.mark.parametrize("page", [p for p in PAGES if NEEDS_DOCKER not in p.read_text()], ids=name_page)
def test_the_examples_of_a_page_run(page: Path, shared_starts: SharedStarts, tmp_path: Path) -> None:
    if NEEDS_BUBBLEWRAP in page.read_text():
        require_bubblewrap()
    run_page(page, shared_starts, tmp_path)


@pytest.mark.docker
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name_page(page), marks=pytest.mark.slow if name_page(page) in SLOW_PAGES else ())
        for page in PAGES
        if NEEDS_DOCKER in page.read_text()
    ],
)
def test_the_examples_of_a_page_that_needs_docker_run(page: Path, shared_starts: SharedStarts, tmp_path: Path) -> None:
    run_page(page, shared_starts, tmp_path)


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ("a  b\n1  2", "a  b\n1  2\n", True),
        ("a ... c", "a b b c\n", True),
        ("a", "a\nb\n", False),
        ("a ...\nz", "a b\nc\n", False),
    ],
)
def test_shown_output_is_compared(expected: str, actual: str, same: bool) -> None:
    assert matches_output(expected, actual) is same


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ('mergemill sql "SELECT a, b; FROM c > 1"', ["mergemill", "sql", "SELECT a, b; FROM c > 1"]),
        ("mergemill run git:greet --limit 1", ["mergemill", "run", "git:greet", "--limit", "1"]),
        ("mergemill tasks list > tasks.txt", []),
        ("mergemill tasks list>tasks.txt", []),
        ("mergemill serve & sleep 1", []),
        ("mergemill tasks list | head", []),
        ("mergemill db copy $HOME", []),
        ("mergemill skills check *.md", []),
        ("NO_COLOR=1 mergemill doctor", []),
    ],
)
def test_what_needs_a_shell_is_run_by_one(command: str, words: list[str]) -> None:
    assert split_plain_command(command) == words


def test_a_command_whose_output_goes_to_a_file_needs_no_shell() -> None:
    assert split_redirected_command("mergemill --quiet run git:a > /dev/null") == (
        ["mergemill", "--quiet", "run", "git:a"],
        "/dev/null",
    )
    assert split_redirected_command('mergemill sql "SELECT 2 > 1" > a/b.txt') == (
        ["mergemill", "sql", "SELECT 2 > 1"],
        "a/b.txt",
    )
    for command in (
        "mergemill tasks list > $HOME",
        "mergemill list | head > a",
        "python a.py > b",
        "mergemill list",
        "mergemill list > a > b",
        'mergemill sql "SELECT 2 > 1"',
    ):
        assert split_redirected_command(command) is None


def test_a_module_in_the_folder_of_the_source_needs_no_shell() -> None:
    assert split_module_command('cd "$MERGEMILL_SOURCE" && python -m a.b --help') == ModuleCommand(
        "a.b", ["--help"], in_source=True
    )
    assert split_module_command("python -m a.b c --d e") == ModuleCommand("a.b", ["c", "--d", "e"], in_source=False)
    for command in ("python -m a | tail -n 1", "PYTHONPATH=x python -m a", "python a.py", "python -m a $HOME"):
        assert split_module_command(command) is None
