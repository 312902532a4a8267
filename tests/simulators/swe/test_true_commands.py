"""Reading, searching, edits and diffs give what the real programs give on a checkout, and no simulator is called."""

from __future__ import annotations

import os
import random
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulators.swe.episode import SweEpisode
from tests.namespaces import require_bubblewrap
from tests.samplers.scripted_model import ScriptedModel
from tests.simulators.swe.making import Calc, open_episode, open_simulator, print_text

N_COMMANDS = 200
MORE = {
    "a b/c d.txt": "one\ntwo  three\n\tfour\n",
    "a b/it's.txt": "quote ' and \" here\n",
    "deep/er/and/deeper/x.py": "import os\n\nVALUE = 3  # the value\n",
    "deep/er/y.py": "".join(f"line {number} of many\n" for number in range(400)),
    "umlaut/\xe4\xf6.txt": "Gr\xfc\xdfe\n",
    ".hidden/dot.txt": "hidden\n",
    "empty.txt": "",
    "no_end.txt": "no newline at the end",
    "crlf.txt": "a\r\nb\r\n",
}


@pytest.fixture
def calc(tmp_path: Path) -> Calc:
    require_bubblewrap()
    return Calc(tmp_path / "repo", MORE)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(lambda _: print_text("simulated\n")) as opened:
        yield opened


@pytest.fixture
def episode(calc: Calc, model: ScriptedModel, tmp_path: Path) -> Iterator[SweEpisode]:
    with open_simulator(tmp_path / "ledger", model) as simulator, open_episode(calc, simulator) as opened:
        yield opened


def run_really(command: str, checkout: Path) -> tuple[str, int]:
    """Return output and exit code of a command on a checkout."""
    env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    env |= {"GIT_PAGER": "cat", "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(
        ["/bin/bash", "-c", command],
        cwd=checkout,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.stdout.decode(errors="replace"), done.returncode


def draw_command(drawn: random.Random, files: list[str]) -> str:
    """Return a command that reads, searches, compares or edits."""
    path, other = (shlex.quote(drawn.choice(files)) for _ in range(2))
    folder = shlex.quote(str(Path(drawn.choice(files)).parent))
    word, number = drawn.choice(["add", "line 1", "o", "import", "V.*E", "zz"]), drawn.randrange(1, 40)
    return drawn.choice(
        [
            f"cat {path}",
            f"cat -A {path} | head -n {number}",
            f"head -n {number} {path}",
            f"tail -n {number} {path}",
            f"sed -n '{number},{number + 9}p' {path}",
            f"grep -rn '{word}' {folder} | sort",
            f"grep -c '{word}' {path} {other}",
            f"grep -rlE '{word}' . --include='*.py' | sort",
            f"grep -n -B1 -A2 '{word}' {path}",
            f"find {folder} -type f -not -path '*/.git/*' | sort",
            "find . -name '*.py' -not -path './.git/*' | sort | xargs wc -l",
            f"wc {path}",
            f"ls {folder}",
            f"ls -p {folder} | grep -v /",
            f"cd {folder} && pwd && ls -1A",
            f"stat -c '%n %s %A' {path}",
            f'file=$(basename {path}); echo "$file"; dirname {path}',
            f"git log --format=%s | wc -l; git show --stat --format= HEAD -- {path} | tail -n 1 | wc -l",
            "git status --short",
            "git diff",
            f"git diff --stat -- {folder}",
            f"git diff --name-only | head -n {number}",
            f"git show HEAD:{path} | head -n {number}",
            f"git grep -n '{word}' -- {folder} | sort",
            "git ls-files | sort",
            f"diff {path} {other}; echo $?",
            f"cut -c1-{number} {path}; awk 'NR % 2' {path}",
            f"nl {path} | tail -n {number}; md5sum {path}",
            f"sed -i 's/{word}/{word}{number}/' {path}",
            f"cat > {folder}/new{number}.txt <<'EOF'\nwritten {number}\n  and $more\nEOF",
            f"echo 'more {number}' >> {path}",
            f"mkdir -p {folder}/made && touch {folder}/made/t{number}",
            f"rm -f {path}; ls {folder}",
            f"mv {path} {folder}/moved{number}",
            f"cp {path} {folder}/copied{number}",
            f"chmod +x {path} && git diff --summary",
            f"git checkout -q -- {path}; git status --short | head -n 5",
            "git diff > ../p; git apply -R ../p; git status --short | head -n 3; git apply ../p",
            f'for f in {path} {other}; do [ -f "$f" ] && tail -c 20 "$f"; done; true',
        ]
    )


def test_random_commands_print_what_the_real_ones_print(
    episode: SweEpisode, model: ScriptedModel, calc: Calc, tmp_path: Path
) -> None:
    checkout = calc.checkout(tmp_path / "checkout")
    drawn = random.Random(7)
    for number in range(N_COMMANDS):
        files = sorted(str(path.relative_to(checkout)) for path in checkout.rglob("*") if path.is_file())
        command = draw_command(drawn, [path for path in files if not path.startswith(".git/")])
        output, code = run_really(command, checkout)
        seen = episode.step("shell", {"command": command})
        assert seen.text.replace("/testbed", str(checkout)) == f"{output}\n[exit code {code}]", (number, command)
        assert seen.simulated == 0
    real, _ = run_really("git add -A && git diff --cached --binary --full-index HEAD", checkout)
    assert episode.diff().decode(errors="replace") == real
    assert len(real) > 1000
    assert model.requests == []
    assert (episode.counts.code, episode.counts.simulated) == (N_COMMANDS, 0)


def test_the_tools_read_search_and_edit_the_true_files(episode: SweEpisode, model: ScriptedModel) -> None:
    def call(tool: str, **arguments: object) -> str:
        return episode.step(tool, arguments).text

    assert call("read", path="a b/c d.txt", first_line=2) == "     2\ttwo  three\n     3\t\tfour\n"
    assert call("read", path="deep/er/y.py", last_line=1) == "     1\tline 0 of many\n[399 more lines]"
    assert sorted(call("search", pattern="left|VALUE", glob="*.py").splitlines()) == [
        "calc/add.py:1:def add(left, right):",
        "calc/add.py:3:    return left - right",
        "deep/er/and/deeper/x.py:3:VALUE = 3  # the value",
    ]
    assert call("search", pattern="two +three", path="a b") == "a b/c d.txt:2:two  three\n"
    assert call("search", pattern="-e nothing") == "no line matches"
    assert call("edit", path="run.sh", old="echo run", new="echo ran") == "run.sh was edited (1 place)"
    assert episode.step("edit", {"path": "new file.txt", "new": "first\n"}).text == "new file.txt was written"
    assert episode.step("edit", {"path": "calc/link.py", "old": "left - right", "new": "left + right"}).text
    patch = episode.diff().decode()
    assert "-    return left - right\n+    return left + right\n" in patch
    assert "calc/link.py" not in patch  # the edit went to the file that it leads to
    assert "old mode" not in patch
    assert "+++ b/new file.txt" in patch
    assert model.requests == []


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("read", {"path": "../../etc/passwd"}, "error: ../../etc/passwd is outside of the repository"),
        ("read", {"path": "/etc/passwd"}, "error: /etc/passwd is outside of the repository"),
        ("edit", {"path": "/tmp/x", "new": "y"}, "error: /tmp/x is outside of the repository"),
        ("edit", {"path": "out/passwd", "old": "root", "new": "y"}, "error: out/passwd is outside of the repository"),
        ("search", {"pattern": "root", "path": "out"}, "error: out is outside of the repository"),
        ("read", {"path": "data/table.bin"}, "error: data/table.bin is binary (5120 bytes)"),
        ("read", {"path": "calc"}, "error: calc is no file"),
        ("read", {"path": "run.sh", "first_line": 9}, "error: run.sh has 2 lines"),
        ("read", {}, "error: the arguments: 'path' is a required property"),
        ("edit", {"path": "run.sh", "new": "x"}, "error: run.sh is not empty: give the text that is replaced as `old`"),
        ("edit", {"path": "run.sh", "old": "zz", "new": "x"}, "error: `old` does not stand in run.sh"),
        ("search", {"pattern": "("}, "error: grep: Unmatched ( or \\("),
        ("fly", {}, "error: there is no tool fly; the tools are shell, read, edit, search, run_tests, submit"),
    ],
)
def test_a_wrong_call_gives_an_error_text(
    episode: SweEpisode, tool: str, arguments: dict[str, object], text: str
) -> None:
    episode.step("shell", {"command": "ln -s /etc out"})
    assert episode.step(tool, arguments).text == text


def test_binary_files_survive_and_are_in_the_patch(episode: SweEpisode, calc: Calc, tmp_path: Path) -> None:
    episode.step(
        "shell", {"command": "printf '\\x00\\xff\\x01' >> data/table.bin; rm data/latin.txt; ln -s run.sh again"}
    )
    checkout = calc.checkout(tmp_path / "checkout")
    patch = episode.submit()
    subprocess.run(["git", "apply", "--index"], cwd=checkout, input=patch, check=True)
    assert (checkout / "data" / "table.bin").read_bytes() == bytes(range(256)) * 20 + b"\x00\xff\x01"
    assert (checkout / "again").readlink() == Path("run.sh")
    assert not (checkout / "data" / "latin.txt").exists()


def test_endless_output_is_cut_and_an_endless_command_ends(
    episode: SweEpisode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simulators.swe.episode.COMMAND_SECONDS", 3.0)
    seen = episode.step("shell", {"command": "yes endless"})
    assert seen.text.endswith("\n[exit code 137, killed: time]")
    assert "characters left out]" in seen.text
    assert len(seen.text) < 40_000
    assert episode.step("shell", {"command": "echo on"}).text == "on\n\n[exit code 0]"


def test_a_damaged_workspace_gives_texts_and_an_empty_submission(episode: SweEpisode) -> None:
    episode.step("shell", {"command": "rm -rf /testbed/* /testbed/.git /run/mergemill"})
    assert episode.step("submit", {}).done
    assert episode.submit() == b""


def test_two_episodes_do_not_see_each_other_and_a_reset_begins_afresh(
    episode: SweEpisode, calc: Calc, model: ScriptedModel, tmp_path: Path
) -> None:
    episode.step("shell", {"command": "echo mine > own.txt; git commit -qam x --author 'a <a@b>'"})
    with open_simulator(tmp_path / "other", model) as simulator, open_episode(calc, simulator) as other:
        assert "own.txt" not in other.step("shell", {"command": "ls"}).text
        assert other.diff() == b""
    assert b"own.txt" in episode.diff()
    episode.reset()
    assert episode.diff() == b""
    assert episode.step("shell", {"command": "git log --oneline | wc -l"}).text.startswith("1\n")


def test_a_tree_of_20_000_files_is_searched_edited_and_compared(model: ScriptedModel, tmp_path: Path) -> None:
    require_bubblewrap()
    files = {f"pkg{number % 200}/sub{number % 7}/f{number}.py": f"VALUE = {number}\n" for number in range(20_000)}
    calc = Calc(tmp_path / "repo", files)
    with open_simulator(tmp_path / "ledger", model) as simulator, open_episode(calc, simulator) as episode:
        assert episode.step("search", {"pattern": "VALUE = 19999$"}).text.endswith("f19999.py:1:VALUE = 19999\n")
        assert "pkg0" in episode.step("shell", {"command": "ls; git status --short; find . -name f77.py"}).text
        episode.step("edit", {"path": "calc/add.py", "old": "left - right", "new": "left + right"})
        assert episode.step("run_tests", {}).simulated == 1
        changed = [line for line in episode.diff().splitlines() if line[:1] in (b"-", b"+")]
        assert changed == [
            b"--- a/calc/add.py",
            b"+++ b/calc/add.py",
            b"-    return left - right",
            b"+    return left + right",
        ]
