"""SWE-bench 5: `tasks.jsonl` with the fields that its harness (5.0.2) and mini-swe-agent read, and the files beside it.

How the harness goes about it, from its source: it starts `image` as root (a local image is not pulled), applies the
model's patch in /testbed with `git apply`, runs `eval_script` under `bash -x` with the lines `#!/bin/bash` and
`set -uxo pipefail` taken out, and reads what stands between the first two marker lines with the named log parser.

So `eval_script` carries the task's own script, byte for byte, with the grader that reads its report, runs the twins and
then prints one line a listed test. Nothing the code under test prints stands between the markers, and an XFAIL, which
the harness would count as passed, is never printed.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import tarfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exporters import parts
from exporters.bundle import put
from exporters.item import Item
from exporters.recipe import write_recipe
from mergemill.errors import InputError

if TYPE_CHECKING:
    from backends.services import Services
    from taskdb.records import Task

LOG_PARSER = "parse_log_pytest_v2"
"""The parser that keeps blanks inside ids. Our lines are the same for every test framework."""

EVAL_SCRIPT = """\
#!/bin/bash
# Runs the task's evaluation script, packed below as it is, and prints what its report says of the listed tests.
{{ set +x; }} 2> /dev/null
[ ! -f "$0" ] || chmod 600 "$0"
box="$(mktemp -d)"
base64 -d << 'END_OF_BOX' | tar -xz -C "$box" || exit 97
{box}
END_OF_BOX
python3 -I -S "$box/grade.py" --lines "$box/lines"
code=$?
[ -f "$box/lines" ] || exit "$code"
echo '>>>>> Start Test Output'
cat "$box/lines"
rm -rf "$box"
(exit "$code")
echo '>>>>> End Test Output'
"""

SET_UP = "its tree, to which the other patches apply, is base_commit with setup_patch"
"""What a manifest notes of a row that whoever checks out its base commit would misread."""

NOOP_PATCH = """\
diff --git a/mergemill-noop.txt b/mergemill-noop.txt
new file mode 100644
--- /dev/null
+++ b/mergemill-noop.txt
@@ -0,0 +1 @@
+This patch changes nothing that matters; the harness does not run empty ones.
"""


def write(items: Sequence[Item], folder: Path, services: Services) -> Mapping[str, Sequence[str]]:
    """Write the bundle; task name -> ids that are spelled differently, and why a task is missing.

    Raises:
        InputError: none of the tasks can be written in this format.
    """
    notes: dict[str, list[str]] = {}
    rows: list[dict[str, Any]] = []
    for item in items:
        try:
            row, notes[item.task.name] = row_of(item, services)
        except UnicodeDecodeError:  # JSON holds text, and the harness hands the patch on as UTF-8
            notes[item.task.name] = ["left out: a patch is not UTF-8, which this format cannot carry"]
            continue
        rows.append(row)
        _write_task(item.task, folder / item.folder, services)
    if not rows:
        raise InputError("no task can be written as swebench: their patches are not UTF-8", advice="--format harbor")
    _write_lines(folder / "tasks.jsonl", rows)
    _write_lines(folder / "predictions.gold.jsonl", (_prediction(row, "gold", row["patch"]) for row in rows))
    _write_lines(folder / "predictions.noop.jsonl", (_prediction(row, "noop", NOOP_PATCH) for row in rows))
    return notes


def row_of(item: Item, services: Services) -> tuple[dict[str, Any], list[str]]:
    """The task's row, and notes on ids that are spelled differently in it.

    Raises:
        UnicodeDecodeError: a patch is not UTF-8.
    """
    task = item.task
    spelled = {test: spelling(test) for test in [*parts.fail_to_pass(task), *task.PASS_TO_PASS]}
    changed = {test: spelt for test, spelt in spelled.items() if spelt != test}
    row = {
        "instance_id": item.folder,
        "repo": task.repo,
        "version": task.version,
        "base_commit": task.base_commit,
        "environment_setup_commit": task.base_commit,
        "setup_patch": services.artifacts.get(task.setup_patch).decode() if task.setup_patch else "",
        "patch": services.artifacts.get(task.gold_patch).decode(),
        "test_patch": services.artifacts.get(task.test_patch).decode(),
        "problem_statement": task.problem_statement,
        "hints_text": task.hints,
        "created_at": task.created_at,
        "FAIL_TO_PASS": json.dumps(list(dict.fromkeys(spelled[test] for test in parts.fail_to_pass(task)))),
        "PASS_TO_PASS": json.dumps(list(dict.fromkeys(spelled[test] for test in task.PASS_TO_PASS))),
        "image": item.image,
        "image_name": item.image,
        "docker_image": item.image,
        "log_parser": LOG_PARSER,
        "eval_type": "pass_and_fail",
        "eval_script": eval_script(task, services, changed),
        "license": task.license,
        "language": task.language,
    }
    together = [line for line, n in Counter(spelled.values()).items() if n > 1]
    return row, [
        *([SET_UP] if task.setup_patch else []),
        *(f"{test!r} is spelled {line!r}, as the log parser would misread it" for test, line in changed.items()),
        *(f"{line!r} stands for several tests, which pass together or not at all" for line in together),
    ]


def spelling(test: str) -> str:
    r"""How a test id stands in our lines and lists: as it is, but for what LOG_PARSER would cut, drop or squeeze.

    The parser deletes control characters and `[<digits>m`, squeezes runs of white space, and cuts FAILED lines at
    ` - `. Each such character becomes `\xNN` or `\uNNNN`; a backslash stays.
    """

    def escaped(found: re.Match[str]) -> str:
        return "".join(f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}" for c in found[0])

    test = re.sub(r"[\x00-\x1f\x7f]|[^\S ]| (?=\s)|^ | $|(?<= )-(?= )|[\ud800-\udfff]", escaped, test)
    return re.sub(r"\[(?=\d+m)", escaped, test)


def eval_script(task: Task, services: Services, spelled: Mapping[str, str]) -> str:
    """The row's `eval_script`; `spelled` names the ids whose lines differ from the id."""
    box = _packed(parts.grader(task, services, spelled=spelled))
    return EVAL_SCRIPT.format(box=base64.encodebytes(box).decode().rstrip("\n"))


def _packed(content: Mapping[str, bytes]) -> bytes:
    """A .tar.gz whose bytes depend on nothing but the files."""
    raw = io.BytesIO()
    with (
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in sorted(content):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content[name]), 0o600
            tar.addfile(info, io.BytesIO(content[name]))
    return raw.getvalue()


def _write_task(task: Task, folder: Path, services: Services) -> None:
    """The files beside the row: what it was made of, to read and to build the image anew."""
    put(folder / "eval.sh", services.artifacts.get(task.the_script), executable=True)
    put(folder / "gold.patch", services.artifacts.get(task.gold_patch))
    put(folder / "test.patch", services.artifacts.get(task.test_patch))
    if task.twin_patch:
        put(folder / "twin.patch", services.artifacts.get(task.twin_patch))
    if task.setup_patch:
        put(folder / "setup.patch", services.artifacts.get(task.setup_patch))
    put(folder / parts.RECORD, parts.record(task))
    write_recipe(task, folder, services)


def _prediction(row: Mapping[str, Any], model: str, patch: str) -> dict[str, str]:
    return {"instance_id": row["instance_id"], "model_name_or_path": model, "model_patch": patch}


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """One JSON object a line, in ASCII: the harness splits at every character that Python takes for a line end."""
    put(path, "".join(json.dumps(row, ensure_ascii=True, sort_keys=True) + "\n" for row in rows))
