"""Imported submissions are graded like any other; the file's own reward counts for nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from taskdb.queries import readonly
from taskdb.store import Store
from tests.cli import run_mergemill
from tests.samplers.conftest import BUGFIX
from tests.samplers.trajectories.making import SYSTEM, TASK

FIX = """diff --git a/greet/words.py b/greet/words.py
--- a/greet/words.py
+++ b/greet/words.py
@@ -1,2 +1,2 @@
 def count(words):
-    return len(words.split(' '))
+    return len(words.split())
"""
TALK = [SYSTEM, TASK, {"role": "assistant", "content": "Done."}]


@pytest.mark.docker
def test_submissions_of_others_are_graded_where_they_have_one(tasks: Path) -> None:
    rows = [
        {"instance_id": BUGFIX, "model_name_or_path": "foreign-right", "model_patch": FIX},
        {"instance_id": BUGFIX, "model_name_or_path": "foreign-empty", "model_patch": "", "resolved": True},
        {"instance_id": BUGFIX, "model": "foreign-talk", "messages": TALK},
    ]
    (tasks / "foreign.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    ungraded = run_mergemill("trajectories", "import", "foreign.jsonl", "--json", cwd=tasks)
    assert [row["value"] for row in ungraded.lines[:-1]] == [None, None, None]
    graded = run_mergemill("trajectories", "import", "foreign.jsonl", "--grade", "--json", cwd=tasks)
    assert [row["value"] for row in graded.lines[:-1]] == [1.0, 0.0, None], graded.stderr
    again = run_mergemill("trajectories", "import", "foreign.jsonl", "--grade", "--json", cwd=tasks)
    assert again.lines[-1] == {"event": "summary", "new": 0, "known": 3, "skipped": 0}
    with Store.open(f"sqlite:///{tasks}/mergemill.db") as store:
        query = "SELECT model, n, c FROM difficulty WHERE model LIKE 'foreign%' ORDER BY model"
        rates = list(readonly.run_query(store, query))
    assert rates == [{"model": "foreign-empty", "n": 1, "c": 0}, {"model": "foreign-right", "n": 1, "c": 1}]
