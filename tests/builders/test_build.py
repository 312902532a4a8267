from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from backends.git import GitRepository
from backends.services import Services
from builders import layer_failures, layers
from builders.acceptance import Reason
from builders.build import build, find_nearest_tag
from core.errors import Transient
from evaluation.reports.outcomes import EvaluationReport
from taskdb.records import Candidate, Environment, Rejection
from tests import records
from tests.containers import make_services, record_containers
from tests.helpers import TinyRepo
from tests.sample import BASE, PYPROJECT

TEST_METADATA = (
    'from importlib.metadata import version\n\n\ndef test_metadata():\n    assert version("greet") == "1.0"\n'
)
FILES = BASE | {"tests/test_metadata.py": TEST_METADATA}


def make_candidate(repo: TinyRepo, base: str, **changes: object) -> Candidate:
    pull = records.make_pull_request(source=f"git:{repo.path}", base_commit=base)
    fields = {"created_at": "2024-03-17T12:00:00+00:00", "version": "", "test_files": (), **changes}
    return records.make_candidate(pull, **fields)


def require_environment(result: Environment | Rejection) -> Environment:
    assert isinstance(result, Environment), result
    return result


def run_inside(services: Services, image: str, script: str) -> str:
    result = services.sandbox.run(image, ["/bin/bash", "-c", script], limits=services.test_limits())
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.docker
def test_a_candidate_becomes_an_environment_that_runs_its_tests(tmp_path: Path) -> None:
    services, repo = make_services(tmp_path), TinyRepo(tmp_path / "repo")
    base = repo.commit("base", FILES)
    repo.commit("the fix", {"greet/__init__.py": "SECRET_OF_THE_FUTURE = 1\n"})
    environment = require_environment(build(make_candidate(repo, base), services))
    assert environment.attempt == 1
    assert (environment.counts.passed, environment.collected_share) == (3, 1.0)
    assert environment.image_bytes < 1_000_000
    stable = EvaluationReport.from_bytes(services.artifacts.get(environment.base_report))
    assert sorted(test.partition("::")[2] for test in stable.outcomes) == [
        "test_it_says_hello",
        "test_metadata",
        "test_two_words",
    ]

    output = run_inside(
        services,
        environment.image,
        "stat -c %U /testbed . .git/index; git status --porcelain --ignored; git log --oneline --all",
    )
    assert "__pycache__" not in output
    assert output.count("Base commit") == 1
    assert output.split()[:3] == ["mergemill"] * 3
    trace = "pwd; which python; ls -A /run/mergemill 2>/dev/null; env | grep -ci -e proxy -e cert -e index"
    assert run_inside(services, environment.image, f"{trace} || true").split() == [
        "/testbed",
        "/opt/venv/bin/python",
        "0",
    ]
    assert "/opt/venv/lib" in run_inside(services, environment.image, "python -m pip --version")
    seen_layers = 0
    with services.images.open_layers(environment.image) as stream:
        for _, layer in stream:
            with tarfile.open(fileobj=io.BytesIO(layer.read())) as tar:
                seen_layers += 1
                assert not [m.name for m in tar if "run/mergemill" in m.name and m.isfile() and "ca.pem" in m.name]
    assert seen_layers >= 3


@pytest.mark.docker
def test_a_file_that_violates_the_projects_line_ending_rules_is_kept_unchanged(tmp_path: Path) -> None:
    services, repo = make_services(tmp_path), TinyRepo(tmp_path / "repo")
    repo.commit("a file with line ends of another system", FILES | {"notes.txt": b"one\r\ntwo\r\n"})
    base = repo.commit("rules that it violates", {".gitattributes": "* text=auto\n"})
    environment = require_environment(build(make_candidate(repo, base), services))
    assert run_inside(services, environment.image, "od -c notes.txt | head -1").split()[4:6] == ["\\r", "\\n"]


@pytest.mark.docker
def test_a_second_build_reuses_its_layers_and_gives_the_same_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Time for a second run that takes ten times as long as the first, and two minutes.
    services, repo = make_services(tmp_path, test_timeout=600), TinyRepo(tmp_path / "repo")
    base = repo.commit("base", FILES)
    environment = require_environment(build(make_candidate(repo, base), services))
    containers = record_containers(monkeypatch)
    other = require_environment(build(make_candidate(repo, base), services))
    assert containers == [other.image], "acceptance makes all runs in one container"
    assert environment.id == other.id
    assert environment.image_digest == other.image_digest


@pytest.mark.docker
def test_another_commit_shares_the_dependency_layer(tmp_path: Path) -> None:
    services, repo = make_services(tmp_path), TinyRepo(tmp_path / "repo")
    first = repo.commit("base", FILES)
    second = repo.commit("more", {"greet/more.py": "x = 1\n"})
    environment, other = (require_environment(build(make_candidate(repo, base), services)) for base in (first, second))
    assert environment.image != other.image
    assert environment.plan.dependency_key == other.plan.dependency_key


@pytest.mark.docker
def test_unresolvable_dependencies_are_rejected_with_error_line_and_log(tmp_path: Path) -> None:
    services, repo = make_services(tmp_path), TinyRepo(tmp_path / "repo")
    wrong = PYPROJECT.replace('["pytest"]', '["pytest==99.1"]')
    base = repo.commit("base", FILES | {"pyproject.toml": wrong})
    rejection = build(make_candidate(repo, base), services)
    assert isinstance(rejection, Rejection)
    assert rejection.reason == Reason.DEPENDENCIES_FAILED
    assert "pytest==99.1" in rejection.detail
    assert rejection.log is not None
    assert "===== attempt 2" in services.artifacts.get_text(rejection.log)


@pytest.mark.docker
def test_a_failed_dependency_layer_is_not_built_again_until_the_failure_is_cleared(tmp_path: Path) -> None:
    clone = GitRepository(TinyRepo(tmp_path / "repo").path)
    services = make_services(tmp_path)
    plan = records.PLAN.model_copy(update={"dependency_steps": (f"echo {tmp_path}; false",)})
    first, second = (
        layers.build_dependency_layer(plan, clone, services),
        layers.build_dependency_layer(plan, clone, services),
    )
    assert first.image is second.image is None
    assert first.result is not None
    assert second.result is not None
    assert first.result.seconds > 0.0
    assert (second.result.seconds, second.result.output) == (0.0, first.result.output)
    layer_failures.clear_failures(services.settings.storage.store_dir)
    again = layers.build_dependency_layer(plan, clone, services).result
    assert again is not None
    assert again.seconds > 0.0


@pytest.mark.parametrize(
    ("output", "is_network"),
    [
        ("curl: (6) Could not resolve host: files.example", True),
        ("Err:1 Could not resolve 'deb.example'", True),
        ("npm ERR! ERESOLVE could not resolve\nnpm ERR! Could not resolve dependency:", False),
        ("> Could not resolve all files for configuration ':testCompileClasspath'.", False),
        ("[INFO] compiling\n[ERROR] Connect to maven.example:443 failed: Connection refused", True),
        ("[INFO] cannot connect to registry: Connection refused\n[ERROR] COMPILATION ERROR", False),
        ("java.rmi.ConnectException: Connection refused to host: 127.0.0.1", False),
    ],
)
def test_only_unresolvable_hosts_are_network_failures(output: str, is_network: bool) -> None:
    assert bool(layers.NETWORK_FAILURE.search(output)) is is_network


@pytest.mark.docker
def test_the_log_of_an_environment_begins_with_the_rejected_attempts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    services, repo = make_services(tmp_path), TinyRepo(tmp_path / "repo")
    # Uploaded in the month of the change, so that the first attempt, pinned to its first day, cannot install it.
    later = PYPROJECT.replace('["pytest"]', '["pytest==8.1.1"]')
    with caplog.at_level("INFO", logger="builders.repair.loop"):
        candidate = make_candidate(repo, repo.commit("base", FILES | {"pyproject.toml": later}))
        environment = require_environment(build(candidate, services))
    assert environment.attempt == 2
    log = services.artifacts.get_text(environment.log)
    assert log.startswith("===== attempt 1: dependencies-failed")
    assert "4 passed" in log  # and the canary that must fail
    assert "attempt 1 rejected: dependencies-failed" in caplog.text


@pytest.mark.docker
def test_tests_that_mostly_fail_reject_the_candidate(tmp_path: Path) -> None:
    services, repo = make_services(tmp_path, max_attempts=1), TinyRepo(tmp_path / "repo")
    broken = "def test_a():\n    assert 0\n\ndef test_b():\n    assert 0\n"
    base = repo.commit("base", {"a.py": "", "test_a.py": broken})
    rejection = build(make_candidate(repo, base), services)
    assert isinstance(rejection, Rejection)
    assert rejection.reason == Reason.MOSTLY_FAILING


@pytest.mark.docker
def test_a_test_suite_that_is_too_slow_is_run_with_the_changes_own_files(tmp_path: Path) -> None:
    services, repo = make_services(tmp_path, test_timeout=8), TinyRepo(tmp_path / "repo")
    slow = "import time\n\ndef test_slow():\n    time.sleep(600)\n"
    base = repo.commit("base", {"a.py": "", "quick/test_a.py": "def test_a():\n    pass\n", "slow/test_b.py": slow})
    patch = services.artifacts.put(b"")
    candidate = make_candidate(repo, base, test_files=("quick/test_a.py",), gold_patch=patch, test_patch=patch)
    environment = require_environment(build(candidate, services))
    assert environment.counts.passed == 1


@pytest.mark.docker
def test_a_unittest_project_is_built_and_run(tmp_path: Path) -> None:
    services, repo = make_services(tmp_path), TinyRepo(tmp_path / "repo")
    body = (
        "import unittest\nimport a\nclass TestA(unittest.TestCase):\n    def test_one(self):\n        assert a.x == 1\n"
    )
    base = repo.commit("base", {"a.py": "x = 1\n", "tests/__init__.py": "", "tests/test_a.py": body})
    environment = require_environment(build(make_candidate(repo, base), services))
    assert environment.plan.test.framework == "unittest"
    assert environment.counts.passed == 1


@pytest.mark.docker
def test_a_tree_without_tests_is_rejected_without_building(tmp_path: Path) -> None:
    services, repo = make_services(tmp_path), TinyRepo(tmp_path / "repo")
    rejection = build(make_candidate(repo, repo.commit("base", {"a.py": ""})), services)
    assert isinstance(rejection, Rejection)
    assert rejection.reason == Reason.NO_PLAN


@pytest.mark.docker
def test_a_network_failure_is_transient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    services, repo = make_services(tmp_path), TinyRepo(tmp_path / "repo")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    unseen = PYPROJECT.replace('["pytest"]', '["pytest", "pretend"]')
    base = repo.commit("base", FILES | {"pyproject.toml": unseen})
    with pytest.raises(Transient):
        build(make_candidate(repo, base), services)


def test_the_nearest_tag_is_one_the_commit_descends_from(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    first = repo.commit("one", {"a": "1"})
    assert find_nearest_tag(GitRepository(repo.path), first) == ""
    repo.git("tag", "v1.0")
    second = repo.commit("two", {"a": "2"})
    repo.git("tag", "v2.0")
    assert find_nearest_tag(GitRepository(repo.path), first) == "v1.0"
    assert find_nearest_tag(GitRepository(repo.path), second) == "v2.0"
