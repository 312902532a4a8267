"""Commands of a line of Bash, as they would be run."""

from __future__ import annotations

import shlex

import pytest

from evaluation.instructions.effects import UNKNOWN_PATH, list_effects, list_inline_commands
from evaluation.instructions.shell import MAX_DEPTH, parse_line


def list_texts(line: str) -> list[str]:
    return [command.text for command in parse_line(line).commands]


@pytest.mark.parametrize(
    "line",
    [
        "git push origin main",
        "git -C . push origin main",
        "git -c user.name=x --no-pager push origin main",
        "git -c alias.p=push p origin main",
        "alias gp='git push'; gp origin main",
        "g=git; $g push origin main",
        'g="git push"; $g origin main',
        "sh -c 'git push origin main'",
        "bash -lc 'git push origin main'",
        "bash -c $'git\\tpush origin main'",
        "bash <<'END'\ngit push origin main\nEND",
        "bash <<< 'git push origin main'",
        'eval "git push origin main"',
        "FOO=1 timeout 30 sudo -u root git push origin main",
        "echo $(git push origin main)",
        "if true; then git push origin main; fi",
        "for x in 1; do git push origin main; done",
        "send() { git push origin main; }; send",
        "(cd sub; git push origin main) &",
        "true && false || git push origin main",
        "find . -name x -exec git push origin main \\;",
        "/usr/bin/git push origin main",
    ],
)
def test_a_command_is_seen_however_it_is_run(line: str) -> None:
    assert any(text.split() == ["git", "push", "origin", "main"] for text in list_texts(line)), list_texts(line)


@pytest.mark.parametrize("line", ["echo 'git push'", "grep -rn 'git push' .", "git log --grep push", "# git push"])
def test_words_about_a_command_are_none(line: str) -> None:
    assert not any(text.startswith("git push") for text in list_texts(line))


def test_programs_of_a_command_line_are_read_for_the_commands_that_they_run() -> None:
    for line in (
        "python -c \"import os; os.system('git push')\"",
        'python3 -c \'import subprocess; subprocess.run(["git", "push"])\'',
        "python - <<'END'\nimport subprocess\nsubprocess.check_call('git push', shell=True)\nEND",
    ):
        inline = [made.text for command in parse_line(line).commands for made in list_inline_commands(command)]
        assert inline == ["git push"], line


def test_commands_of_a_line_are_counted_and_pipelines_are_one() -> None:
    counts = {
        line: parse_line(line).n_listed for line in ("ls", "ls | wc -l", "cd x && ls", "a; b; c", "cat <<E | sh\nE")
    }
    assert counts == {"ls": 1, "ls | wc -l": 1, "cd x && ls": 2, "a; b; c": 3, "cat <<E | sh\nE": 1}


def test_what_runs_in_the_background_is_known() -> None:
    assert [command.is_background for command in parse_line("sleep 9 & ls").commands] == [True, False]


def test_shells_within_shells_are_read_up_to_a_limit() -> None:
    def nest(n_shells: int) -> str:
        line = "git push"
        for _ in range(n_shells):
            line = f"sh -c {shlex.quote(line)}"
        return line

    assert "git push" in list_texts(nest(MAX_DEPTH))
    assert "git push" not in list_texts(nest(MAX_DEPTH + 2))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sed -n 1,5p a.py", [("read", "a.py")]),
        ("sed -i.bak -e s/a/b/ a.py", [("edit", "a.py")]),
        ("cd src && cat a.py ../b.py", [("read", "src/a.py"), ("read", "b.py")]),
        ("grep -n word a.py", [("search", "a.py")]),
        ("rg word", [("search", "")]),
        ("head -n 5 a.py", [("read", "a.py")]),
        ("cat > a.py <<'END'\nx\nEND", [("write", "a.py")]),
        ("echo x >> a.py", [("write", "a.py")]),
        ("tee -a a.py b.py", [("write", "a.py"), ("write", "b.py")]),
        ("python -c \"open('a.py', 'w').write('x')\"", [("write", "a.py")]),
        ("python -c \"open('a.py').read()\"", [("read", "a.py")]),
        (
            "python - <<'END'\nfrom pathlib import Path\np = Path('a.py')\np.write_text(p.read_text())\nEND",
            [("read", "a.py"), ("write", "a.py")],
        ),
        ("python -c \"import sys; open(sys.argv[1], 'w')\" a.py", [("write", UNKNOWN_PATH)]),
        ("perl -pi -e 's/a/b/' a.py", [("edit", "a.py")]),
        ("git checkout -- a.py", [("write", "a.py")]),
        ("git apply <<'END'\n--- a/a.py\n+++ b/a.py\nEND", [("edit", "a.py")]),
        ("apply_patch <<'END'\n*** Begin Patch\n*** Add File: a.py\n*** End Patch\nEND", [("write", "a.py")]),
        ("rm -rf a.py", [("remove", "a.py")]),
        ("find . -name '*.pyc' -delete", [("remove", "")]),
        ("mv a.py b.py", [("remove", "a.py"), ("write", "b.py")]),
        ("pytest -q 2>&1 | tail -3 > /dev/null", []),
    ],
)
def test_effects_of_commands_on_files(line: str, expected: list[tuple[str, str]]) -> None:
    effects = [effect for command in parse_line(line).commands for effect in list_effects(command)]
    assert [(effect.kind.value, effect.path) for effect in effects] == expected
