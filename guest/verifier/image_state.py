"""Compare a container with the image that it was started from, before a submission is graded in it.

    python3 -I -S -B image_state.py WORKDIR FILE     in a fresh container: write the state of the image as JSON

For harnesses that run a task's script where an agent may have worked as root. Whatever the tests' user can write (the
tree, its home, caches) is not compared, as the code under test could change it during the run as well; the rest must be
as the image has it. A file that an agent added to folders of programs and packages is deleted, so that it is not used.

Runs as root on Python 3.6 or later, with the standard library only. A changed kernel, loader, bash or python can hide
the things that it likes: a fresh container is the safe place for a submission.
"""

import base64
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from typing import Any, Collection, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

USER = 1000
HOME = "/home/mergemill"
BLOCK = 1 << 20
DIGEST_BYTES = 6
IGNORED = frozenset(
    ["/proc", "/sys", "/dev", "/run", "/tmp", "/root", "/home", "/logs", "/.dockerenv"]  # noqa: S108
    + ["/var/" + name for name in ("tmp", "run", "lock", "log", "cache", "backups", "lib/apt", "lib/dpkg")]
    + ["/etc/" + name for name in ("hosts", "hostname", "resolv.conf", "mtab")]
)
OPEN_FOLDERS = frozenset(["/", "/opt", "/srv", "/mnt", "/media"])  # what is added there is not found by its name
LOOSE_FOLDERS = frozenset(["bin", "sbin", "site-packages", "dist-packages", "node_modules"])
CACHE_FOLDER = "__pycache__"
INSTALLER_FILES = frozenset(["RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json"])
VARIABLES_OF_CONTAINER = frozenset(["HOME", "HOSTNAME", "PWD", "OLDPWD", "SHLVL", "LC_CTYPE", "_"])
LOADER_VARIABLES = re.compile(r"LD_|BASH_ENV$|BASH_FUNC_|GLIBC_TUNABLES$")
SHELL_FILES = (".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshenv", ".zshrc")
PASSIVE_PROGRAMS = frozenset(["sleep", "tail", "cat", "tee", "timeout", "coreutils"])
SYSTEM_FOLDERS = ("/usr/", "/bin/", "/sbin/", "/lib")
START_SECONDS = 1  # within which the container's command starts all that belongs to it


# ------------------------------------------------------------------------------------------------ units of the image


class Walk:
    """Walk over the file system, in units: folders with their files, and single files of loose folders.

    Args:
        excluded: paths that are left out with all below.
        finds_writable: whether paths that the tests' user can write are left out, too, and kept in `writable`.
    """

    def __init__(self, excluded: Iterable[str], finds_writable: bool) -> None:
        self.excluded = IGNORED.union(excluded, read_mount_points())
        self.finds_writable = finds_writable
        self.writable: List[str] = []

    def list_units(self) -> Iterator[Tuple[str, str, bytes]]:
        """Yield (kind, path, digest): `folder`, `file` of a loose or open folder, or `cache` of compiled Python."""
        waiting = ["/"]
        while waiting:
            folder = waiting.pop()
            lines = [describe(folder)]
            # Files of these folders come and go, so each is compared by itself and not as part of its folder.
            is_loose = folder in OPEN_FOLDERS or os.path.basename(folder) in LOOSE_FOLDERS
            for name in sorted(os.listdir(folder)):
                path = os.path.join(folder, name)
                if self.leaves_out(path) or (folder.endswith(".dist-info") and name in INSTALLER_FILES):
                    continue
                if os.path.isdir(path) and not os.path.islink(path):
                    if name == CACHE_FOLDER:
                        yield "cache", path, hash_folder(path)
                    else:
                        waiting.append(path)
                elif is_loose:
                    yield "file", path, shorten(describe(path))
                else:
                    lines.append(describe(path))
            yield "folder", folder, shorten(b"\n".join(lines))

    def leaves_out(self, path: str) -> bool:
        """Return whether a path is not compared."""
        if path in self.excluded:
            return True
        if not self.finds_writable:
            return False
        status = os.lstat(path)
        is_writable = status.st_uid == USER or (status.st_mode & stat.S_IWOTH and not stat.S_ISLNK(status.st_mode))
        if is_writable:
            self.writable.append(path)
        return bool(is_writable)


def shorten(content: bytes) -> bytes:
    """Return the digest of a description."""
    return hashlib.sha256(content).digest()[:DIGEST_BYTES]


def describe(path: str) -> bytes:
    """Return path, mode, owner, and the content of a file or the target of a link."""
    status = os.lstat(path)
    content = b""
    if stat.S_ISREG(status.st_mode):
        content = hash_file(path).encode()
    elif stat.S_ISLNK(status.st_mode):
        content = os.fsencode(os.readlink(path))
    return b"%s\0%o %d %d\0%s" % (os.fsencode(path), status.st_mode, status.st_uid, status.st_gid, content)


def hash_file(path: str) -> str:
    """Return the sha256 of a file's content."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(BLOCK), b""):
            digest.update(block)
    return digest.hexdigest()


def hash_folder(path: str) -> bytes:
    """Return the digest of a folder with all below."""
    lines: List[bytes] = []
    for folder, folders, names in os.walk(path):
        lines.extend(describe(os.path.join(folder, name)) for name in folders + names)
    return shorten(b"\n".join(sorted(lines)))


def read_mount_points() -> Set[str]:
    """Return the paths where something is mounted over the image; only who started the container can mount."""
    with open("/proc/self/mountinfo", "rb") as file:
        names = [line.split()[4] for line in file]
    return {os.fsdecode(re.sub(rb"\\(\d{3})", lambda octal: bytes([int(octal[1], 8)]), name)) for name in names} - {"/"}


def read_head(workdir: str) -> str:
    """Return the commit that HEAD names; empty where there is none."""
    git = os.path.join(workdir, ".git")
    head = read_text(os.path.join(git, "HEAD"))
    if not head.startswith("ref: "):
        return head
    text = read_text(os.path.join(git, head[len("ref: ") :]))
    # Read without git, which would follow the configuration of a repository that an agent may have changed.
    for line in [] if text else read_text(os.path.join(git, "packed-refs")).splitlines():
        commit, _, name = line.partition(" ")
        text = commit if name == head[len("ref: ") :] else text
    return text


def read_text(path: str) -> str:
    """Return the text of a regular file without space around it; empty where there is none."""
    if not os.path.isfile(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(BLOCK).strip()


def read_state(workdir: str) -> Dict[str, Any]:
    """Return the state of this container, which must be a fresh container, for `list_problems`."""
    walk = Walk([workdir], finds_writable=True)
    units: Dict[str, List[bytes]] = {"folder": [], "file": [], "cache": []}
    for kind, _, digest in walk.list_units():
        units[kind].append(digest)
    return {
        "units": {kind: base64.b64encode(b"".join(sorted(entries))).decode() for kind, entries in units.items()},
        "workdir": workdir,
        "writable": sorted(walk.writable),
        "open": sorted(os.path.join(folder, name) for folder in OPEN_FOLDERS for name in list_names(folder)),
        "home": sorted(list_names(HOME)),
        "shell": hash_shell_files(),
        "env": {name: value for name, value in os.environ.items() if name not in VARIABLES_OF_CONTAINER},
        "head": read_head(workdir),
        "objects": hash_objects(workdir),
    }


def list_names(folder: str) -> List[str]:
    """Return the names in a folder; none where there is no folder."""
    return os.listdir(folder) if os.path.isdir(folder) else []


def hash_shell_files() -> Dict[str, str]:
    """Return name -> sha256 of root's files that a shell reads at its start."""
    return {name: hash_file("/root/" + name) for name in SHELL_FILES if os.path.isfile("/root/" + name)}


def hash_objects(workdir: str) -> str:
    """Return a digest of the objects of the tree's repository."""
    return base64.b64encode(hash_folder(os.path.join(workdir, ".git", "objects"))).decode()


# ------------------------------------------------------------------------------------------------------- comparison


def list_problems(state: Mapping[str, Any]) -> List[str]:
    """Return why a submission cannot be graded in this container, a line each; restore the files that can be restored.

    Raises:
        OSError: the container cannot be read.
    """
    problems = list_processes() + list_variables(state) + list_changes(state)
    if hash_shell_files() != state["shell"]:
        problems.append("a start file of root's shell is not as the image has it")
    # In this order: a process that is still running could undo what is restored, so processes are listed again.
    restore_home(state)
    problems += restore_head(state)
    return problems + list_processes()


def list_changes(state: Mapping[str, Any]) -> List[str]:
    """Return how files outside of the tree differ from the image, and delete a file that was merely added.

    Additions to folders of programs and packages are deleted, those of open folders stay, all others are changes.
    """
    units = {kind: split_digests(text) for kind, text in state["units"].items()}
    foreign: Dict[str, List[str]] = {kind: [] for kind in units}
    missing = {kind: set(digests) for kind, digests in units.items()}
    for kind, path, digest in Walk([state["workdir"]] + state["writable"], finds_writable=False).list_units():
        missing[kind].discard(digest)
        if digest not in units[kind]:
            foreign[kind].append(path)
    others = sorted(foreign["folder"] + foreign["file"])
    kept = {path for path in others if os.path.dirname(path) in OPEN_FOLDERS and path not in state["open"]}
    others = [path for path in others if path not in kept and not lies_in(path, kept)]
    if missing["folder"] or missing["file"]:  # then some of the others are changed, not added
        changed = [f"{find_newest(path)} is not as the image has it" for path in others]
        return changed or [f"{len(missing['folder']) + len(missing['file'])} entries of the image are missing"]
    folders = kept.union(foreign["folder"])
    others = [path for path in others if not lies_in(path, folders)]
    loose = [path for path in others if os.path.basename(os.path.dirname(path)) in LOOSE_FOLDERS]
    for path in loose + [path for path in foreign["cache"] if not lies_in(path, folders)]:
        delete(path)
    return [f"{path} was added to what the image has" for path in others if path not in loose]


def split_digests(text: str) -> Set[bytes]:
    """Return the digests of a text in base64."""
    packed = base64.b64decode(text)
    return {packed[at : at + DIGEST_BYTES] for at in range(0, len(packed), DIGEST_BYTES)}


def lies_in(path: str, folders: Collection[str]) -> bool:
    """Return whether a path lies below any of the folders."""
    while path != "/":
        path = os.path.dirname(path)
        if path in folders:
            return True
    return False


def find_newest(path: str) -> str:
    """Return a file, or the file of a folder that was changed last."""
    names = [] if os.path.islink(path) or not os.path.isdir(path) else os.listdir(path)
    files = [os.path.join(path, name) for name in names if not os.path.isdir(os.path.join(path, name))]
    return max(files, key=lambda file: os.lstat(file).st_ctime) if files else path


def delete(path: str) -> None:
    """Delete a file, a link, or a folder with all below."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.remove(path)


def restore_home(state: Mapping[str, Any]) -> None:
    """Delete the files that the home folder of the tests' user did not have.

    Packages, configuration and caches of its own.
    """
    for name in list_names(HOME):
        if name not in state["home"]:
            delete(os.path.join(HOME, name))


def restore_head(state: Mapping[str, Any]) -> List[str]:
    """Make HEAD name the commit of the image, and return the problem with the repository's objects."""
    git = os.path.join(state["workdir"], ".git")
    if not os.path.isdir(git):
        return ["the tree has no repository"]
    if hash_objects(state["workdir"]) != state["objects"] and not has_sound_objects(git):
        return ["the repository of the tree has damaged objects"]
    if read_head(state["workdir"]) != state["head"]:
        head = os.path.join(git, "HEAD")
        if os.path.lexists(head):
            delete(head)
        with open(head, "w", encoding="ascii") as file:
            file.write(state["head"] + "\n")
    return []


def has_sound_objects(git: str) -> bool:
    """Return whether each object of a repository has the content that its name stands for.

    Git reads them through a repository without configuration.
    """
    # The repository's own configuration could name programs for git to run.
    with tempfile.TemporaryDirectory() as clean:
        for folder in ("refs", "objects/info"):
            os.makedirs(os.path.join(clean, folder))
        for name, text in (
            ("HEAD", "ref: refs/heads/main"),
            ("config", "[core]\nrepositoryformatversion = 0\nbare = true"),
            ("objects/info/alternates", os.path.join(git, "objects")),
        ):
            with open(os.path.join(clean, name), "w", encoding="utf-8") as file:
                file.write(text + "\n")
        env = {"PATH": os.environ["PATH"], "GIT_DIR": clean, "HOME": clean, "GIT_CONFIG_NOSYSTEM": "1"}
        command = ["git", "fsck", "--full", "--no-dangling"]
        return subprocess.call(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0


def list_variables(state: Mapping[str, Any]) -> List[str]:
    """Return variables with which programs load foreign code, and give this process the variables of the image."""
    names = [name for name in os.environ if LOADER_VARIABLES.match(name) and name not in state["env"]]
    # What this process starts from now on has the environment of the image.
    os.environ.clear()
    os.environ.update(state["env"], HOME="/root")
    return [f"the variable {name} is set" for name in sorted(names)]


# -------------------------------------------------------------------------------------------------------- processes


class Process(NamedTuple):
    """State of a process; its start in ticks."""

    name: str
    state: str
    parent: int
    start: int


def list_processes() -> List[str]:
    """Return the processes that were left behind: all but the container's own, and those that wait or copy output."""
    processes = {pid: process for pid, process in ((pid, read_process(pid)) for pid in list_pids()) if process}
    # This process and those that started it.
    own, pid = {1}, os.getpid()
    while pid in processes and pid not in own:
        own.add(pid)
        pid = processes[pid].parent
    first = processes[1].start if 1 in processes else 0
    return [
        f"process {pid} ({process.name}) is running"
        for pid, process in sorted(processes.items())
        if pid not in own
        and process.state not in "ZX"
        and not (process.parent == 1 and process.start - first <= START_SECONDS * os.sysconf("SC_CLK_TCK"))
        and not is_passive(pid)
    ]


def list_pids() -> List[int]:
    """Return the ids of all processes."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def read_process(pid: int) -> Optional[Process]:
    """Return name, state, parent and start (in ticks) of a process; None when it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            head, _, tail = os.fsdecode(file.read()).rpartition(")")
    except OSError:
        return None
    fields = tail.split()
    return Process(head.partition("(")[2], fields[0], int(fields[1]), int(fields[19]))


def is_passive(pid: int) -> bool:
    """Return whether a process runs a program that only waits or copies, with no code but that of the system."""
    try:
        program = os.readlink(f"/proc/{pid}/exe")
        with open(f"/proc/{pid}/maps", "rb") as file:
            mapped = {os.fsdecode(line.split(None, 5)[5].strip()) for line in file if line.count(b"/")}
    except (OSError, IndexError):
        return False
    is_system = all(path.startswith(SYSTEM_FOLDERS) and not path.endswith(" (deleted)") for path in mapped)
    return is_system and os.path.basename(program) in PASSIVE_PROGRAMS


def main(words: Sequence[str]) -> int:
    """Write the state of a fresh container and return the exit code."""
    workdir, path = words
    with open(path, "w", encoding="ascii") as file:
        json.dump(read_state(workdir), file, sort_keys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
