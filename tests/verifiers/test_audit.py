"""The image audit finds future information wherever it is hidden."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from backends.services import Services
from taskdb.records import Task
from tests.containers import LABEL
from tests.verifiers.shop import HIDDEN, SHOP, SHOP_RIGHT, open_shop_task
from verifiers.audit import audit_image
from verifiers.probes import make_patch

pytestmark = pytest.mark.docker

FIX = SHOP_RIGHT.replace("    return sum(prices)", "    return sum(prices, start=0)  # from the first one on")
LEAKS: Sequence[Mapping[str, tuple[str, str]]] = (
    {
        "gold-in-a-dangling-object": (
            "cd /testbed && git hash-object -w /run/gold.py && git gc -q --prune=never",
            "testbed/.git",
        ),
        "a-tag": ("cd /testbed && git tag v2", "testbed/.git/refs/tags/v2"),
        "a-remote": ("cd /testbed && git remote add origin https://example.org/x.git", "testbed/.git/config"),
    },
    {
        "a-later-commit": (
            "cd /testbed && cp /run/gold.py shop/ && git add . && git commit -qm x && git reset -q --hard HEAD~",
            "testbed/.git",
        ),
    },
    {"a-stash": ("cd /testbed && echo x >> shop/__init__.py && git stash -q", "testbed/.git/refs/stash")},
    {
        "hidden-tests-in-tmp": ("cp /run/test.py /tmp/test_later.py", "tmp/test_later.py"),
        "a-script-with-the-patch": ("base64 /run/test.patch > /opt/eval.sh", "opt/eval.sh"),
        "a-packed-copy": (
            "mkdir /w && cp /run/test.py /w/ && tar -czf /opt/later.tar.gz -C /w . && rm -r /w",
            "opt/later.tar.gz!./test.py",
        ),
        "an-installed-copy": (
            "install -D /run/gold.py /opt/venv/lib/python3.11/site-packages/shop/__init__.py",
            "opt/venv/lib/python3.11/site-packages/shop/__init__.py",
        ),
        "a-later-release": (
            "cd /opt/venv/lib/python3.11/site-packages/ && install -D /dev/null greet-9.0.dist-info/METADATA",
            "greet-9.0",
        ),
    },
)
"""For each image: name of a leak -> the command that makes it, and the path at which it is found."""
INSTALLED = "node_modules/odd/index.js"
"""File of a package that is installed inside the tree, with the line of the gold patch."""


@dataclass(frozen=True)
class AuditedTask:
    services: Services
    task: Task


@pytest.fixture(scope="module")
def audited_task(tmp_path_factory: pytest.TempPathFactory) -> AuditedTask:
    made = open_shop_task(tmp_path_factory)
    patch = make_patch({"shop/__init__.py": FIX.encode()}, {"shop/__init__.py": SHOP.encode()})
    task = made.task.model_copy(update={"gold_patch": made.services.artifacts.put(patch)})
    return AuditedTask(made.services, task)


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
    config += f"install -D /run/gold.py /testbed/{INSTALLED}\n"
    for number, leaks in enumerate(LEAKS):
        leaky = f"mergemill-test/leak:{number}"
        commands = "".join(f"({command})\n" for command, _ in leaks.values())
        script = f"set -e; {config}\n{commands}rm -f ~/.gitconfig"
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
            findings = audit_image(audited_task.task.model_copy(update={"image": leaky}), services)
        finally:
            services.images.remove(leaky)
        paths = {finding.path for finding in findings}
        for name, (_, path) in leaks.items():
            assert path in paths, f"{name} was not found: {findings}"
        assert f"testbed/{INSTALLED}" not in paths, "a line of another package may be coincidence"


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
        findings = audit_image(audited_task.task.model_copy(update={"image": names[1]}), services)
    finally:
        for name in reversed(names):
            services.images.remove(name)
    assert [finding.path for finding in findings] == ["testbed/left.py"]
    assert "test patch" in findings[0].description
