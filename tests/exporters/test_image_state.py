"""Scripts that grade in one container refuse a container that is not as its image made it."""

from __future__ import annotations

import base64
import io
import json
import re
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import exporters
from backends.services import Services
from core.config import Settings
from exporters.image_states import NO_STATE_NOTE, ONE_CONTAINER, add_image_state, read_image_state
from exporters.item import ExportItem
from exporters.task_files import build_grader_files
from mergemill.execution.services import make_services as open_services
from taskdb.records import Task
from tests.containers import LABEL, make_services
from tests.exporters.tasks import FAIL_TO_PASS, PASS_TO_PASS, WORDS_RIGHT, make_task, make_task_with_image
from tests.small_base import STRIP

ONE_CONTAINER_FORMATS = ("swebench", "swe-smith", "multi-swe-bench")
GradeAfter = Callable[[str], tuple[str, str]]
PACKAGES = "/opt/venv/lib/python3*/site-packages"
COMMIT = "git -c user.name=a -c user.email=a@example.org commit -qam x"


def test_an_export_without_the_image_notes_that_the_container_is_not_checked(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    item = ExportItem(task=make_task(services, tmp_path), certificate=None)
    assert add_image_state(item, services) is None
    assert item.notes == [NO_STATE_NOTE]
    assert "image_state.json" not in build_grader_files(item.task, services)


def test_an_export_needs_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = make_task(make_services(tmp_path), tmp_path)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    services = open_services(Settings(store=tmp_path / "store"), engine=False)
    assert read_image_state(task, services) is None


@pytest.mark.parametrize("format_name", ONE_CONTAINER_FORMATS)
def test_bundles_for_one_container_say_what_is_weaker(format_name: str, tmp_path: Path) -> None:
    services = make_services(tmp_path)
    exporters.export_tasks(format_name, [make_task(services, tmp_path)], {}, tmp_path / "out", services)
    assert ONE_CONTAINER in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.docker
@pytest.mark.parametrize("format_name", [*ONE_CONTAINER_FORMATS, "verl"])
def test_only_scripts_for_one_container_check_it(
    format_name: str, imaged: tuple[Services, Task], tmp_path: Path
) -> None:
    services, task = imaged
    exporters.export_tasks(format_name, [task], {}, tmp_path / "out", services)
    state = read_image_state(task, services)
    assert state is not None
    (graders,) = find_archives(tmp_path / "out", format_name)
    with tarfile.open(fileobj=io.BytesIO(graders)) as archive:
        files = {member.name: archive.extractfile(member) for member in archive}
        member = files.get("image_state.json")
        assert (member.read() if member else None) == (None if format_name == "verl" else state)


def find_archives(bundle: Path, format_name: str) -> Iterator[bytes]:
    """Yield the packed graders of a bundle."""
    if format_name == "verl":
        for row in pq.read_table(bundle / "train.parquet").to_pylist():
            yield base64.b64decode(row["extra_info"]["verifier"])
        return
    name, column = {
        "swebench": ("tasks.jsonl", "eval_script"),
        "swe-smith": ("tasks.jsonl", "grader"),
        "multi-swe-bench": ("graders.jsonl", "grader"),
    }[format_name]
    for line in (bundle / name).read_text().splitlines():
        text = json.loads(line)[column]
        packed = re.search(r"(?s)END_OF_ARCHIVE'[^\n]*\n(.*)\nEND_OF_ARCHIVE", text)
        yield base64.b64decode(packed[1] if packed else text)


def certify_image(task: Task, services: Services) -> Task:
    """Return the task with the digest of its image."""
    info = services.images.inspect(task.image)
    assert info is not None
    return task.model_copy(update={"image_digest": info.digest})


@pytest.fixture(scope="module")
def imaged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Services, Task]:
    """A task whose image is certified, and services that read the state of the image once.

    The image lacks what it takes to compile: each container reads all files of its image.
    """
    folder = tmp_path_factory.mktemp("image-state")
    services = make_services(folder)
    task = make_task_with_image(services, folder, evaluations=2)
    small = f"{task.image}-small"
    if services.images.inspect(small) is None:
        command, limits = ["/bin/bash", "-c", STRIP], services.build_limits()
        stripped, image = services.images.build(
            task.image, command, small, limits=limits, network=False, workdir="/testbed", labels={LABEL: "1"}
        )
        assert image is not None, stripped.output
    return services, certify_image(task.model_copy(update={"image": small}), services)


@pytest.fixture(scope="module")
def grade_after(imaged: tuple[Services, Task]) -> GradeAfter:
    services, task = imaged
    state = read_image_state(task, services)
    grader_files = build_grader_files(task, services, image_state=state)
    files = {f"/grader/{name}": content for name, content in grader_files.items()}

    def grade(agent: str) -> tuple[str, str]:
        """Return the lines for the harness, and the output, where root ran `agent` and solved the task before."""
        grader = "exec python3 -I -S /grader/grade.py --lines /lines"
        result = services.sandbox.run(
            task.image,
            ["bash", "-c", f"sleep 1.2; cd /testbed\n{agent}\ncd /; cp /solution.py /testbed/words.py; {grader}"],
            limits=services.test_limits(),
            files=files | {"/solution.py": WORDS_RIGHT.encode()},
            collect=["/lines"],
        )
        return result.files.get("/lines", b"").decode(), result.output

    return grade


def write_lines(status: str) -> str:
    """Return the lines for all listed tests with one status."""
    return "".join(f"{status} {test}\n" for test in FAIL_TO_PASS + PASS_TO_PASS)


HONEST = f"""
export PIP_NO_INDEX=1 EXTRA=1 PATH="/opt/tool/bin:$PATH"
mkdir -p /home/mergemill/.cache/pip/http /root/.cache/pip /root/work /tmp/work /opt/tool/bin /installed-agent
mkdir -p /usr/lib/python3/dist-packages/__pycache__
echo cached | tee /home/mergemill/.cache/pip/http/a /root/.cache/pip/b /root/work/notes /tmp/work/c > /opt/tool/bin/tool
chmod +x /opt/tool/bin/tool; touch /eval.sh /root/.bash_history
python3 -m compileall -q $(echo {PACKAGES})/_pytest /testbed; python3 -c 'import json, tests.test_words' || true
for site in $(echo {PACKAGES}); do
    mkdir $site/extra $site/extra-1.0.dist-info; echo 'raise SystemExit(3)' > $site/extra/__init__.py
    printf '[pytest11]\\nextra = extra\\n' >> $site/extra-1.0.dist-info/entry_points.txt
    echo 'raise SystemExit(4)' > $site/single.py
done
printf '#!/bin/sh\\nexit 1\\n' > /usr/local/bin/setpriv; chmod +x /usr/local/bin/setpriv
echo '# a note' >> README.md; git add -A; {COMMIT}; git branch other; echo more >> README.md
setpriv --reuid=1000 --regid=1000 --clear-groups sleep 1000 &
sleep 1000 &
"""


@pytest.mark.docker
def test_an_agent_that_used_its_container_is_graded_as_in_a_fresh_one(grade_after: GradeAfter) -> None:
    lines, output = grade_after(HONEST)
    assert lines == write_lines("PASSED"), output


STANDARD_LIBRARY = "$(dirname $(python3 -c 'import os; print(os.__file__)'))"
CHANGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "git replaced": ("cp /usr/bin/env /usr/bin/git", ("/usr/bin/git is not",)),
    "bash linked": ("ln -s dash /usr/bin/new; mv /usr/bin/new /usr/bin/bash", ("/usr/bin/bash is not",)),
    "removed": ("rm /usr/bin/setpriv", ("1 entries of the image are missing",)),
    "module of the runner, of equal size and time": (
        f"f=$(echo {PACKAGES})/_pytest/runner.py; touch -r $f /tmp/time; sed -i 1s/e/a/ $f; touch -r /tmp/time $f",
        ("/_pytest/runner.py is not",),
    ),
    "packages linked": (f"cd {PACKAGES}; mv _pytest /opt/new; ln -s /opt/new _pytest", ("/_pytest is not",)),
    "package added to the standard library": (f"mkdir {STANDARD_LIBRARY}/pytest", ("/pytest was added",)),
    "several files": (
        (
            f"chmod u+s /usr/bin/env; : > /etc/ld.so.preload; cd {STANDARD_LIBRARY}; : > usercustomize.py\n"
            "for file in json/__init__.py /opt/venv/pyvenv.cfg /etc/skel/.bashrc /root/.bashrc; do echo >> $file; done"
        ),
        (
            "/usr/bin/env is not",
            "/usercustomize.py is not",
            "/etc/ld.so.preload is not",
            "/etc/skel/.bashrc is not",
            "/json/__init__.py is not",
            "/opt/venv/pyvenv.cfg is not",
            "a start file of root's shell is not",
        ),
    ),
    "processes": (
        (
            "setsid bash -c 'while sleep 1; do :; done' > /dev/null 2>&1 &\n"
            "cp $(readlink -f $(command -v python3)) /tmp/tail; /tmp/tail -c 'import time; time.sleep(99)' & sleep 0.5"
        ),
        ("(bash) is running", "(tail) is running"),
    ),
    "variable": ("export LD_PRELOAD=/tmp/none.so", ("the variable LD_PRELOAD is set",)),
    "damaged objects": (
        "file=$(find .git/objects -type f | head -n 1); chmod u+w $file; echo x > $file",
        ("damaged objects",),
    ),
    "no repository": ("rm -rf .git", ("no repository",)),
}
"""What root did besides solving the task, and what the refusal says."""


@pytest.mark.docker
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_container_earns_nothing_and_the_changes_are_named(name: str, grade_after: GradeAfter) -> None:
    agent, reasons = CHANGES[name]
    lines, output = grade_after(agent)
    assert lines == write_lines("FAILED"), output
    refusals = [line for line in output.splitlines() if line.startswith("refused: ")]
    for reason in reasons:
        assert any(reason in line for line in refusals), output


@pytest.mark.docker
def test_a_commit_of_the_agent_decides_nothing_about_protected_files(grade_after: GradeAfter) -> None:
    forged = "import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport():\n    yield\n"
    agent = f"printf '{forged}' | sed 's/    yield/    raise SystemExit(1)/' > conftest.py; git add -A; {COMMIT}"
    lines, output = grade_after(agent)
    assert lines == write_lines("PASSED"), output  # conftest.py is not in the image's commit, so it is removed


@pytest.mark.docker
def test_a_state_is_the_same_in_every_container_and_read_once(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = certify_image(make_task_with_image(services, tmp_path), services)
    first = read_image_state(task, services)
    assert first is not None
    (kept,) = (services.settings.storage.store_dir / "image-states").iterdir()
    kept.unlink()
    kept.parent.rmdir()
    kept.parent.write_text("a folder cannot be made here")
    assert read_image_state(task, services) == first
    kept.parent.unlink()
    assert read_image_state(task, services) == first
    kept.write_bytes(b"kept")
    assert read_image_state(task, services) == b"kept"
    assert len(first) < 64 * 1024
    assert json.loads(first)["workdir"] == "/testbed"
    assert read_image_state(task.model_copy(update={"image_digest": "sha256:" + "3" * 64}), services) is None
