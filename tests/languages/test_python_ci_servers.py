from __future__ import annotations

from datetime import date
from pathlib import Path

from backends.git import GitRepository
from backends.tree import CommitTree
from languages.draft import PlanningContext
from languages.python import PYTHON
from tests.helpers import TinyRepo

WORKFLOW = """\
on: push
jobs:
  test:
    runs-on: ubuntu-latest
    services:
      db:
        image: postgres:14-alpine
      redis:
        image: redis
      httpbin:
        image: kennethreitz/httpbin
    env:
      HTTPBIN_URL: http://httpbin:8080
      DATABASE_URL: postgres://ada:secret@db:5432/greet
      TOKEN: abc
    steps:
      - run: pytest
  lint:
    runs-on: ubuntu-latest
    services:
      other:
        image: mysql
    steps:
      - run: ruff check
"""


def test_servers_that_ci_starts_for_the_tests_are_part_of_the_plan(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("base", {"test_a.py": "def test_a():\n    pass\n", ".github/workflows/ci.yml": WORKFLOW})
    tree = CommitTree(GitRepository(repo.path), base)
    draft = PYTHON.create_draft(tree, PlanningContext(list_available=lambda: ("3.11",), day=date(2024, 3, 17)))
    plan = PYTHON.render_plan(draft)
    assert plan.services == ("postgresql", "redis", "httpbin")
    assert plan.system_packages == ("postgresql", "python3-httpbin", "redis-server")
    assert dict(plan.env)["DATABASE_URL"] == "postgres://ada:secret@localhost:5432/greet"
    assert dict(plan.env)["HTTPBIN_URL"] == "http://localhost:8080"
    assert "TOKEN" not in dict(plan.env)
    assert {e.path for e in plan.evidence if e.choice == "services"} == {".github/workflows/ci.yml"}
