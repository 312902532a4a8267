"""The command that collects an agent's work runs without rights and heeds nothing in the agent's repository."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from exporters.task_files import read_container_file
from tests.containers import make_environment_image, make_services
from tests.exporters.tasks import BASE, WORDS_RIGHT
from tests.helpers import TinyRepo

pytestmark = pytest.mark.docker

Collect = Callable[..., tuple[bytes | None, str]]
OWN = "touch /owned; id > /tmp/who"
COMMIT = "git add -A; git -c user.name=a -c user.email=a@example.org commit -q -m x"
AGENTS: Mapping[str, str] = {
    "nothing else": "true",
    "monitor": f"git config core.fsmonitor '{OWN}; true'",
    "hook": f"mkdir -p .git/hooks; echo '{OWN}' > .git/hooks/post-index-change; chmod +x .git/hooks/*",
    "filter": f"git config filter.x.clean '{OWN}; tr a-z A-Z'; echo '* filter=x' > .git/info/attributes",
    "external diff": f"git config diff.external '{OWN}; true'; git config diff.x.command '{OWN}'",
    "broken configuration": "echo '[' > .git/config",
    "another tree": "git config core.worktree /tmp",
    "broken index": "echo x > .git/index",
    "locked index": "touch .git/index.lock",
    "unchanged by decree": "git update-index --assume-unchanged words.py",
    "own commit": COMMIT,
    "packed commits": f"{COMMIT}; git gc -q",
    "detached commit": f"git checkout -q --detach; {COMMIT}",
    "replaced commit": f"{COMMIT}; git replace HEAD~ HEAD",
    "pipe for a branch": "mkfifo .git/refs/heads/x .git/FETCH_HEAD",
    "broken branch": "echo 1111111111111111111111111111111111111111 > .git/refs/heads/x",
    "link": "mv .git /tmp/elsewhere; ln -s /tmp/elsewhere .git",
    "file": "mv .git /tmp/elsewhere; echo 'gitdir: /tmp/elsewhere' > .git",
    "repository in a folder": "git init -q sub; git init -q sub/deep; echo x > sub/new; rm -rf sub/new",
    "other variables": "echo 'export GIT_DIR=/nowhere GIT_EXTERNAL_DIFF=false' >> ~/.bashrc",
    "user's configuration": f"git config --global core.fsmonitor '{OWN}; true'; git config --global diff.noprefix true",
}
"""What an agent, as user mergemill, does to its container besides solving the task."""
LOST = {
    "deleted": "rm -rf .git",
    "no objects": "rm -rf .git/objects",
    "pipe for HEAD": "rm -rf .git/*; mkfifo .git/HEAD",
}
"""What keeps the work from being collected."""


@pytest.fixture(scope="module")
def collect(tmp_path_factory: pytest.TempPathFactory) -> Collect:
    services = make_services(tmp_path_factory.mktemp("collect"))
    image = make_environment_image(services, BASE)

    def run(agent: str, as_root: str = "true") -> tuple[bytes | None, str]:
        """Return the collected patch and the output, with `owned` in it where root ran the agent's commands."""
        command = read_container_file("collect.sh").decode()
        script = (
            "cd /testbed; mkdir -p /logs/artifacts; cp /solution words.py; chown mergemill words.py\n"
            'setpriv --reuid=mergemill --regid=mergemill --clear-groups env HOME=/home/mergemill bash -c "$1"\n'
            f'{as_root}\nsh -c "$2"; [ ! -e /owned ] || echo owned; cat /tmp/who'
        )
        result = services.sandbox.run(
            image,
            ["bash", "-c", script, "agent", agent, command],
            limits=services.test_limits(),
            files={"/solution": WORDS_RIGHT.encode()},
            collect=["/logs/artifacts/model.patch"],
        )
        return result.files.get("/logs/artifacts/model.patch"), result.output

    return run


@pytest.mark.parametrize("name", AGENTS)
def test_the_work_is_collected_and_root_runs_nothing_of_it(name: str, collect: Collect, tmp_path: Path) -> None:
    patch, output = collect(AGENTS[name])
    assert patch, output
    assert "owned" not in output.split(), output
    assert "uid=" not in output, output
    fresh = TinyRepo(tmp_path / "fresh")
    fresh.commit("Begin", BASE)
    (tmp_path / "patch").write_bytes(patch)
    fresh.git("apply", str(tmp_path / "patch"))
    assert (fresh.path / "words.py").read_text() == WORDS_RIGHT
    assert fresh.git("status", "--porcelain").split() == ["M", "words.py"]


@pytest.mark.parametrize("name", LOST)
def test_without_its_repository_an_agent_hands_in_an_empty_patch(name: str, collect: Collect) -> None:
    assert collect(LOST[name])[0] == b""


def test_files_of_root_are_collected_and_unreadable_ones_left_out(collect: Collect) -> None:
    patch, output = collect(
        "true", "umask 077; mkdir own; echo x > own/file; echo x > foreign; chown 77 foreign; chmod 600 foreign"
    )
    assert patch, output
    assert b"b/own/file" in patch
    assert b"b/words.py" in patch
    assert b"foreign" not in patch
