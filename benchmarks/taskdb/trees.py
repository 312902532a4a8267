"""Base trees of generated tasks: small repositories whose commits have known ids, so that tasks can be exported."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable
from functools import cache

from backends.base_trees import BaseTreeStore
from backends.git import run_git
from benchmarks.taskdb.words import TextMaker

FILES = 40
"""Files of a tree that have content, 2 KB each; those that generated patches change are empty."""
_PERSON = b"g <g@localhost> 1500000000 +0000"


@cache
def make_tree(paths: tuple[str, ...]) -> tuple[str, bytes]:
    """Return the id of the tree that all generated base commits have, and the commands of `git fast-import` for it."""
    texts = TextMaker(random.Random("tree"))  # noqa: S311 - generated texts
    files = dict.fromkeys(paths, b"")
    for number in range(FILES):
        lines = [f"{texts.make_name(2)} = {' '.join(texts.make_words(12))!r}\n" for _ in range(20)]
        files[f"src/part_{number}.py"] = "".join(lines).encode()
    entries = {path.removeprefix("src/"): _hash_object(b"blob", content) for path, content in files.items()}
    rows = b"".join(b"100644 %s\0%s" % (name.encode(), bytes.fromhex(entries[name])) for name in sorted(entries))
    source = _hash_object(b"tree", rows)
    commands = b"".join(
        b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(files[path]), files[path]) for path in sorted(files)
    )
    return _hash_object(b"tree", b"40000 src\0" + bytes.fromhex(source)), commands


def compute_base_commit(repo: str, number: int, paths: tuple[str, ...]) -> str:
    """Return the id of the base commit of a generated change; `paths`: files of its tree that patches change."""
    tree, _ = make_tree(paths)
    message = _make_message(repo, number)
    content = b"tree %s\nauthor %s\ncommitter %s\n\n%s" % (tree.encode(), _PERSON, _PERSON, message)
    return _hash_object(b"commit", content)


def write_base_trees(trees: BaseTreeStore, repo: str, numbers: Iterable[int], paths: tuple[str, ...]) -> None:
    """Keep the base commits of some changes of a repository, as exports expect them."""
    path = trees.locate(repo)
    run_git("init", "-q", "--bare", "--template=", str(path))
    _, commands = make_tree(paths)
    root = b'M 040000 %s ""\n' % make_tree(paths)[0].encode()
    stream, commits = list[bytes](), list[str]()
    for number in numbers:
        commit, message = compute_base_commit(repo, number, paths), _make_message(repo, number)
        stream.append(
            b"reset refs/trees/%s\ncommit refs/trees/%s\nauthor %s\ncommitter %s\ndata %d\n%s\n%s\n"
            % (commit.encode(), commit.encode(), _PERSON, _PERSON, len(message), message, root if commits else commands)
        )
        commits.append(commit)
    run_git("fast-import", "--quiet", "--date-format=raw", data=b"".join(stream), cwd=path)
    (path / "shallow").write_text("".join(f"{commit}\n" for commit in sorted(commits)))


def _make_message(repo: str, number: int) -> bytes:
    return f"{repo} {number}\n".encode()


def _hash_object(kind: bytes, content: bytes) -> str:
    return hashlib.sha1(b"%s %d\0%s" % (kind, len(content), content), usedforsecurity=False).hexdigest()
