"""The image audit finds future information wherever it is hidden."""

from __future__ import annotations

import io
import tarfile
from dataclasses import dataclass

import pytest

from backends.services import Services
from mergemill.pipeline.kinds import derive
from taskdb.records import Rejection, Task, Verification
from tests.containers import LABEL, make_lineage, make_services
from tests.helpers import TinyRepo
from tests.verifiers.shop import HIDDEN, SHOP, SHOP_RIGHT, TESTS
from verifiers.audit import audit_image
from verifiers.verify import verify

pytestmark = pytest.mark.docker

FIX = SHOP_RIGHT.replace("    return sum(prices)", "    return sum(prices, start=0)  # from the first one on")
LEAKS = {
    "gold-in-a-dangling-object": "cd /testbed && git hash-object -w /run/gold.py && git gc -q --prune=never",
    "a-later-commit": "cd /testbed && cp /run/gold.py shop/ && git add . && git commit -qm x && "
    "git reset -q --hard HEAD~",
    "a-stash": "cd /testbed && echo x >> shop/__init__.py && git stash -q",
    "a-tag": "cd /testbed && git tag v2",
    "a-remote": "cd /testbed && git remote add origin https://example.org/x.git",
    "hidden-tests-in-tmp": "cp /run/test.py /tmp/test_later.py",
    "a-script-with-the-patch": "base64 /run/test.patch > /opt/eval.sh",
    "a-packed-copy": "mkdir /w && cp /run/test.py /w/ && tar -czf /opt/later.tar.gz -C /w . && rm -r /w",
    "a-later-release": "mkdir /opt/venv/lib/python3.11/site-packages/greet-9.0.dist-info && "
    "echo x > /opt/venv/lib/python3.11/site-packages/greet-9.0.dist-info/METADATA",
}


@dataclass(frozen=True)
class AuditedTask:
    services: Services
    task: Task


@pytest.fixture(scope="module")
def audited_task(tmp_path_factory: pytest.TempPathFactory) -> AuditedTask:
    folder = tmp_path_factory.mktemp("audit")
    services = make_services(folder, repeats=1)
    repo = TinyRepo(folder / "repo")
    base = repo.commit("Start", {"shop/__init__.py": SHOP, "tests/test_shop.py": TESTS})
    merge = repo.commit("Fix", {"shop/__init__.py": FIX, "tests/test_shop.py": HIDDEN})
    lineage = make_lineage(repo, services, base, merge)
    verification = verify(lineage, services)
    assert isinstance(verification, Verification), verification
    made = derive(lineage.with_record(verification), services)
    assert not isinstance(made, Rejection)
    (task,) = made
    return AuditedTask(services, task)


def test_a_clean_image_is_clean(audited_task: AuditedTask) -> None:
    assert audit_image(audited_task.task, audited_task.services) == ()


def test_every_leak_is_found_though_a_later_layer_hides_it(audited_task: AuditedTask) -> None:
    services, image = audited_task.services, audited_task.task.image
    given = {
        "/run/gold.py": FIX.encode(),
        "/run/test.py": HIDDEN.encode(),
        "/run/test.patch": services.artifacts.get(audited_task.task.test_patch),
    }
    config = "git config --global user.email a@example.org; git config --global user.name a; "
    for name, command in LEAKS.items():
        leaky = f"mergemill-test/leak:{name}"
        script = f"set -e; {config} {command}; rm -f ~/.gitconfig"
        ran, made = services.images.build(
            image,
            ["/bin/bash", "-c", script],
            leaky,
            limits=services.build_limits(),
            files=given,
            network=False,
            labels={LABEL: "1"},
        )
        assert made is not None, ran.output
        try:
            found = audit_image(audited_task.task.model_copy(update={"image": leaky}), services)
        finally:
            services.images.remove(leaky)
        assert found, f"{name} was not found"


def test_a_file_that_a_later_layer_removes_is_still_found(audited_task: AuditedTask) -> None:
    services, image = audited_task.services, audited_task.task.image
    names = ["mergemill-test/leak:shown", "mergemill-test/leak:hidden"]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        member = tarfile.TarInfo("testbed/left.py")
        member.size = len(HIDDEN)
        tar.addfile(member, io.BytesIO(HIDDEN.encode()))
    packed.seek(0)
    limits = services.build_limits()
    services.images.build(image, ["true"], names[0], limits=limits, tree=packed, network=False)
    services.images.build(names[0], ["rm", "/testbed/left.py"], names[1], limits=limits, network=False)
    try:
        found = audit_image(audited_task.task.model_copy(update={"image": names[1]}), services)
    finally:
        for name in reversed(names):
            services.images.remove(name)
    assert [finding.path for finding in found] == ["testbed/left.py"]
    assert "test patch" in found[0].description
