from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from backends.git import Repository
from backends.services import Services
from backends.testing.outcomes import Report
from builders import failures, layers
from builders.accept import Reason
from builders.build import build, nearest_tag
from mergemill.errors import Transient
from taskdb.records import Candidate, Environment, Rejection
from tests import records
from tests.boxes import make_services
from tests.helpers import TinyRepo
from tests.sample import BASE, PYPROJECT

TEST_METADATA = (
    'from importlib.metadata import version\n\n\ndef test_metadata():\n    assert version("greet") == "1.0"\n'
)
FILES = BASE | {"tests/test_metadata.py": TEST_METADATA}


def candidate(repo: TinyRepo, base: str, **changes: object) -> Candidate:
    pull = records.pull_request(source=f"git:{repo.path}", base_commit=base)
    return records.candidate(pull, created_at="2024-03-17T12:00:00+00:00", version="", **changes)


def environment(result: Environment | Rejection) -> Environment:
    assert isinstance(result, Environment), result
    return result


def inside(services: Services, image: str, script: str) -> str:
    ran = services.sandbox.run(image, ["/bin/bash", "-c", script], limits=services.test_limits())
    assert ran.exit_code == 0, ran.output
    return ran.output


@pytest.mark.docker
def test_a_candidate_becomes_a_box_that_runs_its_tests(tmp_path: Path) -> None:
    services, repo = make_services(tmp_path), TinyRepo(tmp_path / "repo")
    base = repo.commit("base", FILES)
    repo.commit("the fix", {"greet/__init__.py": "SECRET_OF_THE_FUTURE = 1\n"})
    made = environment(build(candidate(repo, base), services))
    assert made.attempt == 1
    assert (made.counts.passed, made.collected_share) == (3, 1.0)
    assert made.image_bytes < 1_000_000
    stable = Report.from_bytes(services.artifacts.get(made.base_report))
    assert sorted(test.partition("::")[2] for test in stable.outcomes) == [
        "test_it_says_hello", "test_metadata", "test_two_words"
    ]  # fmt: skip

    seen = inside(
        services,
        made.image,
        "stat -c %U /testbed . .git/index; git status --porcelain --ignored; git log --oneline --all",
    )
    assert "__pycache__" not in seen
    assert seen.count("Base commit") == 1
    assert seen.split()[:3] == ["mergemill"] * 3
    trace = "pwd; which python; ls -A /run/mergemill 2>/dev/null; env | grep -ci -e proxy -e cert -e index"
    assert inside(services, made.image, f"{trace} || true").split() == ["/testbed", "/opt/venv/bin/python", "0"]
    seen_layers = 0
    with services.sandbox.layers(made.image) as stream:
        for _, layer in stream:
            with tarfile.open(fileobj=io.BytesIO(layer.read())) as tar:
                seen_layers += 1
                assert not [m.name for m in tar if "run/mergemill" in m.name and m.isfile() and "ca.pem" in m.name]
    assert seen_layers >= 3


@pytest.mark.docker
def test_a_file_that_breaks_the_projects_rules_on_line_ends_is_taken_as_it_is(tmp_path: Path) -> None:
    services, repo = make_services(tmp_path), TinyRepo(tmp_path / "repo")
    repo.commit("a file with line ends of another system", FILES | {"notes.txt": b"one\r\ntwo\r\n"})
    base = repo.commit("rules that it breaks", {".gitattributes": "* text=auto\n"})
    made = environment(build(candidate(repo, base), services))
    assert inside(services, made.image, "od -c notes.txt | head -1").split()[4:6] == ["\\r", "\\n"]


@pytest.mark.docker
def test_a_second_build_finds_its_layers_and_the_same_record(tmp_path: Path) -> None:
    services, repo = make_services(tmp_path), TinyRepo(tmp_path / "repo")
    base = repo.commit("base", FILES)
    one = environment(build(candidate(repo, base), services))
    other = environment(build(candidate(repo, base), services))
    assert one.id == other.id
    assert one.image_digest == other.image_digest


@pytest.mark.docker
def test_another_commit_shares_the_dependency_layer(tmp_path: Path) -> None:
    services, repo = make_services(tmp_path), TinyRepo(tmp_path / "repo")
    first = repo.commit("base", FILES)
    second = repo.commit("more", {"greet/more.py": "x = 1\n"})
    one, other = (environment(build(candidate(repo, base), services)) for base in (first, second))
    assert one.image != other.image
    assert one.plan.dependency_key == other.plan.dependency_key


@pytest.mark.docker
def test_what_cannot_be_resolved_is_rejected_with_its_line_and_log(tmp_path: Path) -> None:
    services, repo = make_services(tmp_path), TinyRepo(tmp_path / "repo")
    wrong = PYPROJECT.replace('["pytest"]', '["pytest==99.1"]')
    base = repo.commit("base", FILES | {"pyproject.toml": wrong})
    rejected = build(candidate(repo, base), services)
    assert isinstance(rejected, Rejection)
    assert rejected.reason == Reason.DEPENDENCIES_FAILED
    assert "pytest==99.1" in rejected.detail
    assert rejected.log is not None
    assert "===== attempt 2" in services.artifacts.text(rejected.log)


@pytest.mark.docker
def test_a_dependency_layer_that_failed_is_not_tried_again_until_it_is_forgotten(tmp_path: Path) -> None:
    clone = Repository(TinyRepo(tmp_path / "repo").path)
    services = make_services(tmp_path)
    plan = records.PLAN.model_copy(update={"dependency_steps": (f"echo {tmp_path}; false",)})
    first, second = layers.dependencies(plan, clone, services), layers.dependencies(plan, clone, services)
    assert first.image is second.image is None
    assert first.ran is not None
    assert second.ran is not None
    assert first.ran.seconds > 0.0
    assert (second.ran.seconds, second.ran.output) == (0.0, first.ran.output)
    failures.forget(services.settings.store_dir)
    again = layers.dependencies(plan, clone, services).ran
    assert again is not None
    assert again.seconds > 0.0


@pytest.mark.parametrize(
    ("said", "is_network"),
    [
        ("curl: (6) Could not resolve host: files.example", True),
        ("Err:1 Could not resolve 'deb.example'", True),
        ("npm ERR! ERESOLVE could not resolve\nnpm ERR! Could not resolve dependency:", False),
        ("> Could not resolve all files for configuration ':testCompileClasspath'.", False),
    ],
)
def test_what_cannot_be_resolved_is_the_network_s_fault_only_where_it_is_a_host(said: str, is_network: bool) -> None:
    assert bool(layers.NETWORK_TROUBLE.search(said)) is is_network


@pytest.mark.docker
def test_the_log_of_a_box_begins_with_the_attempts_that_were_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    services, repo = make_services(tmp_path), TinyRepo(tmp_path / "repo")
    # Uploaded in the month of the change, so that the first attempt, dated on its first day, cannot have it.
    later = PYPROJECT.replace('["pytest"]', '["pytest==8.1.1"]')
    with caplog.at_level("INFO", logger="builders.repair.loop"):
        made = environment(build(candidate(repo, repo.commit("base", FILES | {"pyproject.toml": later})), services))
    assert made.attempt == 2
    log = services.artifacts.text(made.log)
    assert log.startswith("===== attempt 1: dependencies-failed")
    assert "4 passed" in log  # and the canary that must fail
    assert "attempt 1 refused: dependencies-failed" in caplog.text


@pytest.mark.docker
def test_tests_that_mostly_fail_reject_the_candidate(tmp_path: Path) -> None:
    services, repo = make_services(tmp_path), TinyRepo(tmp_path / "repo")
    broken = "def test_a():\n    assert 0\n\ndef test_b():\n    assert 0\n"
    base = repo.commit("base", {"a.py": "", "test_a.py": broken})
    rejected = build(candidate(repo, base), services)
    assert isinstance(rejected, Rejection)
    assert rejected.reason == Reason.MOSTLY_FAILING


@pytest.mark.docker
def test_a_suite_that_is_too_long_is_tried_with_the_changes_own_files(tmp_path: Path) -> None:
    services, repo = make_services(tmp_path, test_timeout=8), TinyRepo(tmp_path / "repo")
    slow = "import time\n\ndef test_slow():\n    time.sleep(600)\n"
    base = repo.commit("base", {"a.py": "", "quick/test_a.py": "def test_a():\n    pass\n", "slow/test_b.py": slow})
    made = environment(build(candidate(repo, base, test_files=("quick/test_a.py",)), services))
    assert made.counts.passed == 1


@pytest.mark.docker
def test_a_project_of_unittest_is_built_and_run(tmp_path: Path) -> None:
    services, repo = make_services(tmp_path), TinyRepo(tmp_path / "repo")
    body = (
        "import unittest\nimport a\nclass TestA(unittest.TestCase):\n    def test_one(self):\n        assert a.x == 1\n"
    )
    base = repo.commit("base", {"a.py": "x = 1\n", "tests/__init__.py": "", "tests/test_a.py": body})
    made = environment(build(candidate(repo, base), services))
    assert made.plan.test.framework == "unittest"
    assert made.counts.passed == 1


@pytest.mark.docker
def test_a_tree_without_tests_is_rejected_without_building(tmp_path: Path) -> None:
    services, repo = make_services(tmp_path), TinyRepo(tmp_path / "repo")
    rejected = build(candidate(repo, repo.commit("base", {"a.py": ""})), services)
    assert isinstance(rejected, Rejection)
    assert rejected.reason == Reason.NO_PLAN


@pytest.mark.docker
def test_a_network_that_fails_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    services, repo = make_services(tmp_path), TinyRepo(tmp_path / "repo")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    unseen = PYPROJECT.replace('["pytest"]', '["pytest", "pretend"]')
    base = repo.commit("base", FILES | {"pyproject.toml": unseen})
    with pytest.raises(Transient):
        build(candidate(repo, base), services)


def test_the_nearest_tag_is_one_the_commit_descends_from(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    first = repo.commit("one", {"a": "1"})
    assert nearest_tag(Repository(repo.path), first) == ""
    repo.git("tag", "v1.0")
    second = repo.commit("two", {"a": "2"})
    repo.git("tag", "v2.0")
    assert nearest_tag(Repository(repo.path), first) == "v1.0"
    assert nearest_tag(Repository(repo.path), second) == "v2.0"
