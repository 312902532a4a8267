"""Small environments for tests with containers: a venv with pytest and a tree with one commit, named by content."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
import uv

from backends.clones import CloneStore
from backends.git import GitRepository
from backends.sandbox.container import Container
from backends.sandbox.docker import DockerSandbox
from backends.sandbox.engine import DockerEngine
from backends.sandbox.execution import ExecResult
from backends.services import Services
from builders.bases import ensure_base
from core.config import Settings
from languages.paths import is_protected
from languages.rendering import LOCAL_SETTINGS
from taskdb.artifacts import Artifacts
from taskdb.records import BuildPlan, Candidate, Counts, Environment, Kind, PublishedLists, TestCommand
from taskdb.records.lineage import Lineage
from tests.helpers import TinyRepo

LABEL = "mergemill.test"

_VENV = """
set -e
id mergemill 2>/dev/null || useradd -m -u 1000 mergemill
git config --system safe.directory '*'
cp /run/uv /tmp/uv && chmod +x /tmp/uv
/tmp/uv venv -q --no-cache --python python3 /opt/venv
/tmp/uv pip install -q --no-cache --python /opt/venv/bin/python {packages}
/opt/venv/bin/python -m compileall -q /opt/venv/lib
rm /tmp/uv
"""
_TREE = """
set -e
cd /testbed
git init -q . && git add -A -f
git -c user.name=a -c user.email=a@example.org commit -q -m base
chown -R 1000:1000 /testbed
echo /testbed > $(echo /opt/venv/lib/python*/site-packages)/testbed.pth
"""


def make_services(tmp_path: Path, **settings: object) -> Services:
    """Return services on the real engine with small limits."""
    small = {
        "test_timeout": 60,
        "memory_mb": 512,
        "disk_mb": 256,
        "pids": 128,
        "budget_seconds": 300,
        "store": tmp_path / "store",
    }
    return Services(
        settings=Settings(**{**small, **settings}),  # type: ignore[arg-type]
        sandbox=DockerSandbox(),
        clones=CloneStore(tmp_path / "clones"),
        artifacts=Artifacts(tmp_path / "artifacts"),
    )


def record_containers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the image of each container that this process creates from now on."""
    images, create = list[str](), DockerEngine.create_container

    def record_image(self: DockerEngine, image: str, *arguments: Any, **options: Any) -> Container:
        images.append(image)
        return create(self, image, *arguments, **options)

    monkeypatch.setattr(DockerEngine, "create_container", record_image)
    return images


def make_environment_image(
    services: Services, files: Mapping[str, str | bytes], packages: str = "pytest==8.3.4"
) -> str:
    """Return the name of an image whose /testbed contains these files; it is built once per content."""
    base = ensure_base("python", "3.11", services).name
    venv = f"mergemill-test/venv:{_compute_hash([base, packages, _VENV])}"
    if services.images.inspect(venv) is None:
        certificates = services.settings.host.find_ca_bundle()
        given = {"/run/uv": Path(uv.find_uv_bin()).read_bytes()}
        given |= {"/run/ca.pem": certificates.read_bytes()} if certificates else {}
        ran, image = services.images.build(
            base,
            ["/bin/bash", "-c", _VENV.format(packages=packages)],
            venv,
            limits=services.build_limits(),
            files=given,
            env={"SSL_CERT_FILE": "/run/ca.pem"} if certificates else {},
            labels={LABEL: "1"},
        )
        assert image is not None, ran.output
    content = {name: text.encode() if isinstance(text, str) else text for name, text in files.items()}
    name = f"mergemill-test/tree:{_compute_hash([venv, _TREE, sorted((n, c.hex()) for n, c in content.items())])}"
    if services.images.inspect(name) is None:
        ran, image = services.images.build(
            venv,
            ["/bin/bash", "-c", _TREE],
            name,
            limits=services.build_limits(),
            tree=_make_tar(content),
            network=False,
            workdir="/testbed",
            labels={LABEL: "1"},
        )
        assert image is not None, ran.output
    return name


def run_in_container(
    services: Services, image: str, command: Sequence[str], files: Mapping[str, bytes], collect: Sequence[str] = ()
) -> ExecResult:
    """Return the result of a command in a fresh container, with files that only root can read.

    The container takes and returns files by its streams, as those of gradings do. The engine's own requests for them
    take 50 ms of CPU each.
    """
    with services.sandbox.open_pool(image, limits=services.test_limits()) as pool:
        return pool.run(command, files=files, collect=collect, last=True)


def make_lineage(
    repo: TinyRepo,
    services: Services,
    base: str,
    merge: str,
    *,
    framework: Literal["pytest", "unittest"] = "pytest",
    argv: tuple[str, ...] = ("pytest",),
    packages: str = "pytest==8.3.4",
    published: PublishedLists | None = None,
) -> Lineage:
    """Return the lineage that miner and builders would make for the change from `base` to `merge`."""
    names = repo.git("diff", "--name-only", "--no-renames", base, merge).splitlines()
    tests = [name for name in names if is_protected(name)]
    gold = [name for name in names if not is_protected(name)]
    patches = [_git_diff(repo, base, merge, part) for part in (gold, tests)]
    candidate = Candidate(
        parent="0" * 64,
        source=f"git:{repo.path}",
        repo="ada/greet",
        name="ada__greet-1",
        language="python",
        base_commit=base,
        merge_commit=merge,
        created_at="2024-03-01T12:00:00+00:00",
        version="1.0",
        problem_statement="It is wrong.",
        hints="",
        license="MIT",
        gold_patch=services.artifacts.put(patches[0]),
        test_patch=services.artifacts.put(patches[1]),
        gold_files=tuple(gold),
        test_files=tuple(tests),
        gold_lines=1,
        test_lines=1,
        published=published,
    )
    tree = repo.git("ls-tree", "-r", "--name-only", base).splitlines()
    image = make_environment_image(services, {name: _git_show(repo, base, name) for name in tree}, packages)
    info = services.images.inspect(image)
    assert info is not None
    plan = BuildPlan(
        language="python",
        language_version="3.11",
        exclude_newer="2024-03-01",
        system_packages=(),
        dependency_steps=(),
        source_steps=(),
        test=TestCommand(framework=framework, argv=argv),
        env=LOCAL_SETTINGS,
    )
    environment = Environment(
        parent=candidate.id,
        name=candidate.name,
        plan=plan,
        attempt=1,
        image=image,
        image_digest=info.digest,
        image_bytes=0,
        collected_share=1.0,
        counts=Counts(),
        base_report="",
        log="",
        seconds=1.0,
        test_seconds=0.5,
    )
    return Lineage(candidate=candidate, environment=environment, kinds=(Kind.BUGFIX,))


def _git_diff(repo: TinyRepo, base: str, merge: str, names: list[str]) -> bytes:
    if not names:
        return b""
    return GitRepository(repo.path).run_git("diff-tree", "-p", "--binary", "--full-index", base, merge, "--", *names)


def _git_show(repo: TinyRepo, commit: str, name: str) -> bytes:
    return GitRepository(repo.path).run_git("cat-file", "blob", f"{commit}:{name}")


def _make_tar(files: Mapping[str, bytes]) -> io.BytesIO:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"testbed/{name}")
            member.size, member.mode = len(content), 0o644
            tar.addfile(member, io.BytesIO(content))
    out.seek(0)
    return out


def _compute_hash(data: object) -> str:
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()[:20]
