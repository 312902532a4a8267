"""The projects with honest submissions, by language."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.fairness.go_project import GO
from benchmarks.fairness.javascript_project import JAVASCRIPT
from benchmarks.fairness.python_project import PYTHON
from benchmarks.fairness.rust_project import RUST
from benchmarks.fairness.suite import HonestProject

PROJECTS: Mapping[str, HonestProject] = {project.language: project for project in (PYTHON, JAVASCRIPT, GO, RUST)}
