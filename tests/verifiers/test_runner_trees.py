"""A tree that is a test runner, or a part of one, keeps its own modules; modules that shadow the runner are removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.build import build
from evaluation.runner.run import run_tests
from evaluation.script.render import render_plan_script
from taskdb.records import Environment, Verification
from taskdb.records.lineage import Lineage
from tests.containers import make_lineage, make_services
from tests.helpers import TinyRepo
from tests.verifiers.no_controls import no_controls
from verifiers.verify import verify

__all__ = ["no_controls"]
BASE = {
    ".gitignore": "_version.py\n*.egg-info\n",
    "setup.py": "from pathlib import Path\nfrom setuptools import setup\n\n"
    "Path('src/junitxml/_version.py').write_text('version = 3\\n')\n"
    "setup(name='junitxml', version='3', package_dir={'': 'src'}, packages=['junitxml'])\n",
    "src/junitxml/__init__.py": "from junitxml._version import version\n",
    "xml/one.txt": "1\n",
    "tests/test_version.py": "import junitxml\n\n\ndef test_version():\n    assert junitxml.version == 3\n",
}
AFTER = {
    "src/junitxml/__init__.py": "from junitxml._version import version\nfrom junitxml.sums import add\n",
    "src/junitxml/sums.py": "from pathlib import Path\n\n\ndef add():\n"
    "    return sum(int(file.read_text()) for file in Path('xml').glob('*.txt'))\n",
    "xml/two.txt": "2\n",
    "tests/test_sums.py": "from junitxml import add\n\n\ndef test_add():\n    assert add() == 3\n",
}
SHADOWS = ("lib/xml/tree.py", "src/pluggy.py", "src/pluggy/hooks.py", "xml/__init__.py")


@pytest.mark.usefixtures("no_controls")
@pytest.mark.docker
def test_generated_and_added_modules_of_the_tree_stay_and_shadows_go(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("base", BASE)
    merge = repo.commit("Add a sum", AFTER)
    repo.commit("shadows", dict.fromkeys(SHADOWS, "raise SystemExit\n"))
    services = make_services(tmp_path, repeats=1)
    candidate = make_lineage(repo, services, base, merge).candidate
    environment = build(candidate, services)
    assert isinstance(environment, Environment), environment
    assert [attempt.reason for attempt in environment.attempts] == ["accepted"]
    verification = verify(Lineage(candidate=candidate, environment=environment), services)
    assert isinstance(verification, Verification), verification
    assert [test for test, _ in verification.FAIL_TO_PASS] == ["tests/test_sums.py::test_add"]

    shadowing = repo.git("diff", "--binary", base, "--", "src", "lib", "xml").encode() + b"\n"
    script = render_plan_script(
        environment.plan,
        test_patch=services.artifacts.get(candidate.test_patch),
        files=["tests/test_sums.py"],
        canaries_beside=(),
    )
    with services.sandbox.open_pool(environment.image, limits=services.test_limits()) as pool:
        result = run_tests(pool, script, workdir=environment.plan.workdir, patch=shadowing, last=True)
    assert result.restored_files == SHADOWS
    assert result.report is not None, result.log
    assert result.report.count_statuses().passed == 1
