"""Which lines were executed, from what Go and V8 say of it: `path:first-last`, a line each. Needs Python 3.9.

    python3 profiles.py WORKDIR FOLDER

FOLDER holds Go's cover profiles (`*.go`) and V8's coverage (`coverage-*.json`). A script that was not run as it stands
in its file (compiled from something else, or transformed) cannot be told and is passed over.
"""

import json
import os
import re
import stat
import sys
from bisect import bisect_left

MAX_BYTES = 256 * 1024 * 1024
BLOCK = re.compile(r"^(.+\.go):(\d+)\.\d+,(\d+)\.\d+ \d+ (\d+)$", re.MULTILINE)
MODULE = re.compile(r'^module\s+"?([^"\s]+)', re.MULTILINE)
LEFT_OUT = {".git", "node_modules", "vendor", "testdata"}


def main():
    """All profiles of the folder; lines come out sorted."""
    root, folder = os.path.realpath(sys.argv[1]), sys.argv[2]
    found = set()
    modules = go_modules(root)
    for name in sorted(os.listdir(folder)):
        content = read(os.path.join(folder, name))
        if content is None:
            continue
        if name.endswith(".go"):
            found |= set(go_blocks(content, root, modules))
        elif name.startswith("coverage-"):
            found |= set(v8_lines(content, root))
    for path, first, last in sorted(found):
        sys.stdout.write("%s:%d-%d\n" % (path, first, last))


def read(path):
    """Text of a regular file, None for everything else."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        return file.read(MAX_BYTES).decode("utf-8", "replace")


# ---------------------------------------------------------------------------------------------------------- Go


def go_modules(root):
    """[(import path, folder)] of the modules of the tree, longest path first."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
        if "go.mod" in names:
            named = MODULE.search(read(os.path.join(folder, "go.mod")) or "")
            if named:
                found.append((named.group(1), os.path.relpath(folder, root)))
    return sorted(found, key=lambda one: -len(one[0]))


def go_blocks(content, root, modules):
    """(path, first line, last line) of the blocks that were run."""
    for file, first, last, count in BLOCK.findall(content):
        path = go_path(file, root, modules)
        if path and int(count):
            yield path, int(first), int(last)


def go_path(file, root, modules):
    """The file of the tree that a package's file is; without modules the longest end that is there."""
    for name, folder in modules:
        if file.startswith(name + "/"):
            path = os.path.normpath(os.path.join(folder, file[len(name) + 1 :]))
            return path if os.path.isfile(os.path.join(root, path)) else ""
    parts = file.split("/")
    ends = ("/".join(parts[start:]) for start in range(len(parts)))
    return next((end for end in ends if end and os.path.isfile(os.path.join(root, end))), "")


# ---------------------------------------------------------------------------------------------------------- V8


def v8_lines(content, root):
    """(path, line, line) of the lines of which the beginning was run."""
    try:
        scripts = json.loads(content)["result"]
    except (ValueError, KeyError, TypeError):
        return
    for script in scripts:
        url = script.get("url", "")
        file = os.path.realpath(url.removeprefix("file://"))
        inside = file[len(root) + 1 :] if file.startswith(root + "/") else ""
        if inside and "node_modules" not in inside.split("/"):
            text = read(file)
            for line in executed(text, script.get("functions", [])) if text else ():
                yield inside, line, line


def executed(text, functions):
    """Lines whose first character lies in a range that was run; ranges that come later lie within those before."""
    ranges = [part for function in functions for part in function.get("ranges", [])]
    size = utf16(text)
    if not ranges or ranges[0].get("startOffset") != 0 or ranges[0].get("endOffset") != size:
        return []
    lines, starts, at = [], [], 0
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            lines.append(number)
            starts.append(at + len(line) - len(line.lstrip()))
        at += utf16(line) + 1
    counts = [0] * len(lines)
    for part in ranges:
        first, last = bisect_left(starts, part["startOffset"]), bisect_left(starts, part["endOffset"])
        counts[first:last] = [part["count"]] * (last - first)
    return [line for line, count in zip(lines, counts) if count]  # noqa: B905 - Python 3.9 has no strict


def utf16(text):
    """Length as JavaScript counts it."""
    return len(text) + sum(character > "\uffff" for character in text) if not text.isascii() else len(text)


if __name__ == "__main__":
    main()
