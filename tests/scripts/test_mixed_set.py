"""`scripts/mixed-set` processes more candidates until every kind has enough tasks, and goes on where it stopped."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STUB = """\
#!/bin/sh
echo "$*" >>calls
[ "$1" = run ] && exit {run}
[ "$2" = show ] && echo "a subject"
[ "$2" != freeze ] && exit 0
[ "$(grep -c freeze calls)" -gt {short} ] && touch mixed.json && exit 0
exit {code}
"""


def make_set(folder: Path, *words: str, run: int = 0, short: int = 0, code: int = 3) -> tuple[int, list[str]]:
    """Run the script with a stand-in for mergemill; return its exit code and the calls.

    Args:
        folder: folder of the script.
        words: arguments.
        run: exit code of `mergemill run`.
        short: calls of `bench freeze` that end with `code`, before those that freeze the set.
        code: exit code of these.
    """
    stub = folder / "mergemill"
    stub.write_text(STUB.format(run=run, short=short, code=code))
    stub.chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(
        [ROOT / "scripts" / "mixed-set", *words], cwd=folder, env=environment, capture_output=True, check=False
    )
    calls = folder / "calls"
    return done.returncode, calls.read_text().splitlines() if calls.exists() else []


def test_more_candidates_are_processed_until_a_set_can_be_frozen(tmp_path: Path) -> None:
    code, calls = make_set(tmp_path, "some.sources", "mixed", short=2)
    assert code == 0
    limits = [call.split("--limit ")[1].split()[0] for call in calls if call.startswith("run @some.sources ")]
    assert limits == ["2", "4", "6"]
    frozen = [call for call in calls if call.startswith("bench freeze mixed ")]
    assert len(frozen) == 3
    kinds = "--kind bugfix,feature,test-writing,injected,review --of-each-kind 6 "
    assert all(kinds in call and "--rebuilt-images --held-out --out mixed.json" in call for call in frozen)
    assert calls[-1] == "bench show mixed.json"
    assert (tmp_path / "mixed.subjects").read_text() == "a subject\n"


@pytest.mark.parametrize(
    ("fields", "code", "n_calls"),
    [({"run": 75}, 75, 1), ({"short": 9, "code": 1}, 1, 2), ({"short": 9}, 3, 12)],
)
def test_the_script_ends_with_the_code_of_what_failed(
    fields: dict[str, int], code: int, n_calls: int, tmp_path: Path
) -> None:
    ended, calls = make_set(tmp_path, "some.sources", "mixed", "2", "bugfix,review", **fields)
    assert (ended, len(calls)) == (code, n_calls)
    assert not (tmp_path / "mixed.subjects").exists()


@pytest.mark.parametrize("words", [(), ("some.sources",), ("a", "b", "1", "bugfix", "more")])
def test_wrong_arguments_are_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    assert make_set(tmp_path, *words) == (2, [])
