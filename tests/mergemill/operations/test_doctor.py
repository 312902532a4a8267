"""`mergemill doctor` reports what is missing and the command that fixes it."""

from __future__ import annotations

import http.server
import socket
import sqlite3
import subprocess
import sys
import threading
import uuid

import pytest

from builders.bases import ensure_base
from core.config import Settings
from core.errors import UsageError
from mergemill.agents.sampling.programs import find_missing_programs, make_program_store
from mergemill.operations.doctor import CHECKS, run_checks
from samplers.programs import store as program_store
from tests.cli import run_mergemill
from tests.containers import make_services
from tests.github import AccessToken, GitHub, TokenLimits, World


def run_all_checks(settings: Settings) -> dict:
    return {check.name: check for check in run_checks(settings)}


@pytest.fixture
def no_engine(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")


@pytest.fixture
def no_index(monkeypatch):
    """An index address where no server listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://127.0.0.1:{taken.getsockname()[1]}/simple")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield


def test_without_an_engine_the_other_checks_run_and_the_fix_is_named(tmp_path, no_engine, no_index):
    seen = run_all_checks(Settings(db=f"sqlite:///{tmp_path}/a.db"))
    assert len(seen) == len(CHECKS)
    assert (seen["docker engine"].ok, seen["docker engine"].fix) == (False, "scripts/setup docker")
    assert not seen["base images"].ok
    assert (seen["agent python"].ok, seen["agent programs"].fix) == (False, "scripts/setup docker")
    assert seen["git"].ok
    assert seen["python"].ok


def test_a_package_index_that_does_not_answer_fails_its_check(tmp_path, no_engine, no_index):
    check = run_all_checks(Settings(db=f"sqlite:///{tmp_path}/a.db"))["package index"]
    assert not check.ok
    assert "PIP_INDEX_URL" in check.fix


def test_a_missing_database_passes_and_another_file_fails(tmp_path, no_engine, no_index):
    assert run_all_checks(Settings(db=f"sqlite:///{tmp_path}/none.db"))["database"].ok
    (tmp_path / "text.db").write_text("no database at all, but longer than a header of one hundred bytes " * 3)
    assert not run_all_checks(Settings(db=f"sqlite:///{tmp_path}/text.db"))["database"].ok


def test_a_database_of_another_program_fails_its_check(tmp_path, no_engine, no_index):
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.execute("create table t (x)")
    connection.commit()
    connection.close()
    assert not run_all_checks(Settings(db=f"sqlite:///{tmp_path}/other.db"))["database"].ok


def test_a_missing_ca_bundle_fails_its_check(tmp_path, no_engine, no_index):
    settings = Settings(db=f"sqlite:///{tmp_path}/a.db", ca_bundle=tmp_path / "none.pem")
    check = run_all_checks(settings)["network settings"]
    assert not check.ok


def test_workers_are_threads_without_a_cluster(tmp_path, no_engine, no_index):
    check = run_all_checks(Settings(db=f"sqlite:///{tmp_path}/a.db", workers=3))["cluster"]
    assert (check.ok, check.detail) == (True, "3 threads of this machine")


def test_a_cluster_that_does_not_answer_fails_its_check_alone(tmp_path, no_engine, no_index):
    settings = Settings(db=f"sqlite:///{tmp_path}/a.db", store=tmp_path / "s", cluster="ray://127.0.0.1:1")
    seen = run_all_checks(settings)
    assert not seen["cluster"].ok
    assert "no Ray cluster answers at ray://127.0.0.1:1" in seen["cluster"].detail
    assert "docker engine" not in seen
    assert seen["git"].ok


def test_a_malformed_cluster_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="--cluster: slurm is unknown"):
        run_checks(Settings(db=f"sqlite:///{tmp_path}/a.db", cluster="slurm"))


def test_the_package_verifiers_of_pypi_fails_its_check(tmp_path, monkeypatch, no_engine, no_index):
    info = tmp_path / "verifiers-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: verifiers\nVersion: 0.1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    check = run_all_checks(Settings(db=f"sqlite:///{tmp_path}/a.db"))["environment"]
    assert not check.ok
    assert "environment of its own" in check.fix


def test_a_missing_github_token_passes_with_its_purpose(tmp_path, monkeypatch, no_engine, no_index):
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    check = run_all_checks(Settings(db=f"sqlite:///{tmp_path}/a.db"))["github"]
    assert check.ok
    assert "GITHUB_TOKEN" in check.detail


def test_each_github_token_is_listed_with_its_quota_and_a_wrong_one_with_the_fix(tmp_path, no_engine, no_index):
    tokens = [
        AccessToken("ghp_good_token1", limits=TokenLimits(points=77, requests=88)),
        AccessToken("ghp_old_token2", revoked=True),
    ]
    with GitHub(World(), tokens=tokens) as hub:
        base = {"db": f"sqlite:///{tmp_path}/a.db", "github_api": hub.url}
        good = run_all_checks(Settings.model_validate(base | {"github_tokens": "ghp_good_token1"}))["github"]
        settings = Settings.model_validate(base | {"github_tokens": "ghp_good_token1,ghp_old_token2"})
        both = run_all_checks(settings)["github"]
        assert hub.account("ghp_good_token1").used.get("core", 0) == 0
    assert (good.ok, good.detail) == (True, "the token (...ken1): 77 points and 88 requests left")
    assert not both.ok
    assert both.detail.endswith("; token 2 of 2 (...ken2): Bad credentials")
    assert "GITHUB_TOKEN" in both.fix


def test_an_unreachable_github_passes_with_a_message(tmp_path, no_engine, no_index):
    options = {
        "db": f"sqlite:///{tmp_path}/a.db",
        "github_api": "http://127.0.0.1:9",
        "github_tokens": "ghp_good_token1",
    }
    check = run_all_checks(Settings.model_validate(options))["github"]
    assert check.ok
    assert "the connection to http://127.0.0.1:9 failed" in check.detail


@pytest.mark.docker
def test_an_engine_is_listed_with_version_and_free_space(tmp_path, no_index):
    seen = run_all_checks(Settings(db=f"sqlite:///{tmp_path}/a.db"))
    assert seen["docker engine"].ok
    assert "storage driver" in seen["docker engine"].detail
    assert "MB free" in seen["docker disk"].detail or "not on this machine" in seen["docker disk"].detail


@pytest.fixture
def no_programs(tmp_path, monkeypatch):
    """Services on an engine that no program was installed on; volumes that a test makes are removed."""
    prefix = f"mergemill-test-{uuid.uuid4().hex[:8]}-"
    monkeypatch.setattr(program_store, "PREFIX", prefix)
    services = make_services(tmp_path)
    make_program_store(services).get_image()
    yield services
    for volume in services.sandbox.volumes.list_volumes(prefix):
        services.sandbox.volumes.remove(volume.name)


@pytest.mark.docker
def test_missing_programs_of_agents_pass_with_the_command_that_installs_them(
    tmp_path, monkeypatch, no_index, no_programs
):
    with http.server.HTTPServer(("127.0.0.1", 0), Registry) as registry:
        threading.Thread(target=registry.serve_forever, args=(0.05,), daemon=True).start()
        monkeypatch.setenv("NPM_CONFIG_REGISTRY", f"http://127.0.0.1:{registry.server_port}")
        seen = run_all_checks(Settings(db=f"sqlite:///{tmp_path}/a.db"))
        registry.shutdown()
    assert seen["agent python"].ok
    assert "is not installed; the first rollout installs it, or mergemill images programs react" in (
        seen["agent python"].detail
    )
    assert seen["agent programs"].ok
    assert seen["agent programs"].detail.startswith("installed: none; the first rollout installs others, or ")
    assert "mergemill images programs mini-swe-agent openhands claude-code" in seen["agent programs"].detail


class Registry(http.server.BaseHTTPRequestHandler):
    """A registry that has what it is asked for."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        """Print nothing."""


@pytest.mark.docker
def test_missing_programs_fail_where_npm_does_not_answer(tmp_path, monkeypatch, no_index, no_programs):
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9")
    check = run_all_checks(Settings(db=f"sqlite:///{tmp_path}/a.db"))["agent programs"]
    assert not check.ok
    assert "npm's registry does not answer" in check.detail
    assert "NPM_CONFIG_REGISTRY" in check.fix
    assert "mergemill images programs mini-swe-agent openhands claude-code" in check.fix


@pytest.mark.docker
def test_installed_programs_pass_without_a_registry(tmp_path, monkeypatch, no_index, no_programs):
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9")
    base = make_program_store(no_programs)._open_base()
    toolbox = program_store.name_toolbox(base)
    _, scaffolds = find_missing_programs(no_programs)
    for scaffold in scaffolds:
        volume = program_store.name_program(scaffold.program, toolbox) if scaffold.program else toolbox
        no_programs.sandbox.volumes.create(volume, {})
    seen = run_all_checks(Settings(db=f"sqlite:///{tmp_path}/a.db"))
    assert (seen["agent python"].ok, seen["agent python"].detail) == (True, "portable Python 3.13 is installed")
    assert seen["agent programs"].ok
    assert seen["agent programs"].detail == (
        "installed: mini-swe-agent, openhands, claude-code, codex, opencode, qwen-code"
    )


@pytest.mark.docker
def test_containers_of_a_killed_run_are_counted_and_the_command_named_removes_them(tmp_path, no_index):
    killed = subprocess.Popen([sys.executable, "-c", KILLED, tmp_path], stdout=subprocess.PIPE, text=True)
    name = killed.stdout.readline().strip()
    killed.kill()
    killed.wait()
    killed.stdout.close()
    subprocess.run(["docker", "create", "--name", name, make_image(tmp_path), "true"], check=True, capture_output=True)
    check = run_all_checks(Settings(db=f"sqlite:///{tmp_path}/a.db"))["leftovers"]
    assert not check.ok
    assert int(check.detail.split()[0]) >= 1
    assert run_mergemill(*check.fix.partition(" (")[0].split()[1:], cwd=tmp_path).exit_code == 0
    left = subprocess.run(["docker", "ps", "-aq", "--filter", f"name={name}"], check=True, capture_output=True)
    assert left.stdout == b""


KILLED = """
import time
from backends.sandbox.container_names import make_container_name
print(make_container_name(), flush=True)
time.sleep(600)
"""


def make_image(folder) -> str:
    """Name of some image."""
    return ensure_base("python", "3.11", make_services(folder)).name
