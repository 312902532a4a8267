"""Print the executed lines from coverage profiles of Go and V8, as rows `path:first-last`. Needs Python 3.9.

    python3 profiles.py WORKDIR FOLDER

FOLDER holds Go's cover profiles (`*.go`) and V8's coverage (`coverage-*.json`). A script whose text differs
from its file (compiled or transformed) is skipped, as its lines cannot be mapped.
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
IGNORED_FOLDERS = {".git", "node_modules", "vendor", "testdata"}


def main():
    """Print the rows of all profiles of the folder, sorted."""
    root, folder = os.path.realpath(sys.argv[1]), sys.argv[2]
    found = set()
    modules = find_go_modules(root)
    for name in sorted(os.listdir(folder)):
        content = read_file(os.path.join(folder, name))
        if content is None:
            continue
        if name.endswith(".go"):
            found |= set(parse_go_blocks(content, root, modules))
        elif name.startswith("coverage-"):
            found |= set(parse_v8_lines(content, root))
    for path, first, last in sorted(found):
        sys.stdout.write("%s:%d-%d\n" % (path, first, last))


def read_file(path):
    """Return the text of a regular file; None for anything else."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        return file.read(MAX_BYTES).decode("utf-8", "replace")


# ---------------------------------------------------------------------------------------------------------- Go


def find_go_modules(root):
    """Return (import path, folder) of the tree's modules, the longest path first."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in IGNORED_FOLDERS)
        if "go.mod" in names:
            match = MODULE.search(read_file(os.path.join(folder, "go.mod")) or "")
            if match:
                found.append((match.group(1), os.path.relpath(folder, root)))
    return sorted(found, key=lambda one: -len(one[0]))


def parse_go_blocks(content, root, modules):
    """Yield (path, first line, last line) of the executed blocks."""
    for file, first, last, count in BLOCK.findall(content):
        path = find_go_path(file, root, modules)
        if path and int(count):
            yield path, int(first), int(last)


def find_go_path(file, root, modules):
    """Return the tree's file for a package's file; without modules the longest existing tail of its path."""
    for name, folder in modules:
        if file.startswith(name + "/"):
            path = os.path.normpath(os.path.join(folder, file[len(name) + 1 :]))
            return path if os.path.isfile(os.path.join(root, path)) else ""
    parts = file.split("/")
    ends = ("/".join(parts[start:]) for start in range(len(parts)))
    return next((end for end in ends if end and os.path.isfile(os.path.join(root, end))), "")


# ---------------------------------------------------------------------------------------------------------- V8


def parse_v8_lines(content, root):
    """Yield (path, line, line) of the lines whose first character was executed."""
    try:
        scripts = json.loads(content)["result"]
    except (ValueError, KeyError, TypeError):
        return
    for script in scripts:
        url = script.get("url", "")
        file = os.path.realpath(url.removeprefix("file://"))
        inside = file[len(root) + 1 :] if file.startswith(root + "/") else ""
        if inside and "node_modules" not in inside.split("/"):
            text = read_file(file)
            for line in find_executed_lines(text, script.get("functions", [])) if text else ():
                yield inside, line, line


def find_executed_lines(text, functions):
    """Return the lines whose first character is in an executed range; later ranges lie within earlier ones."""
    ranges = [part for function in functions for part in function.get("ranges", [])]
    size = count_utf16(text)
    if not ranges or ranges[0].get("startOffset") != 0 or ranges[0].get("endOffset") != size:
        return []
    lines, starts, at = [], [], 0
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            lines.append(number)
            starts.append(at + len(line) - len(line.lstrip()))
        at += count_utf16(line) + 1
    counts = [0] * len(lines)
    for part in ranges:
        first, last = bisect_left(starts, part["startOffset"]), bisect_left(starts, part["endOffset"])
        counts[first:last] = [part["count"]] * (last - first)
    return [line for line, count in zip(lines, counts) if count]


def count_utf16(text):
    """Return the length in UTF-16 code units, as JavaScript counts it."""
    return len(text) + sum(character > "\uffff" for character in text) if not text.isascii() else len(text)


if __name__ == "__main__":
    main()
