"""No module imports itself through others: lazy imports and those for annotations count, too.

The contracts of import-linter are about packages, and its `acyclic_siblings` forbids circles of packages, too.
"""

import graphlib
import tomllib
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]


def find_cycle(graph: grimp.ImportGraph) -> list[str]:
    """Return the modules of a cycle, the first of them at the end again; nothing where there is none."""
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def test_modules_import_each_other_in_one_direction():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert not find_cycle(grimp.build_graph(*settings["tool"]["importlinter"]["root_packages"], cache_dir=None))


def test_cycle_through_a_lazy_import_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package = tmp_path / "circle_of_modules"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "above.py").write_text("from circle_of_modules import below\n")
    (package / "below.py").write_text("def call():\n    from circle_of_modules import above\n    return above\n")
    monkeypatch.syspath_prepend(tmp_path)
    cycle = find_cycle(grimp.build_graph("circle_of_modules", cache_dir=None))
    assert set(cycle) == {"circle_of_modules.above", "circle_of_modules.below"}
