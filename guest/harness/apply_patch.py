"""Apply a submission's patch to the tree in the current folder, after repairs of its form where git needs them.

    python3 -I -S apply_patch.py [--cached] [--record FOLDER] PATCH

Runs in a container of the task's image, on Python 3.6 or later, with the standard library only. Exit code 0: applied.
96: the patch does not apply, and the tree is unchanged. FOLDER gets the files `repairs` (the repairs that were made,
one per line) and `touched` (paths that the patch names, each with a NUL).

A repair concerns the form of a patch: headers, counts, line ends, text around it. It never adds, drops or changes an
added or removed line, except for the line ends.
"""

import argparse
import os
import re
import subprocess
import sys

PATCH_FAILED_EXIT = 96
UNFENCE = "removed Markdown fences"
UNWRAP = "removed text around the diffs"
LAST_LINE_FEED = "added missing last line feed"
STAMPS = "separated names from time stamps"
PREFIXES = "corrected the prefixes of paths"
MODES = "added missing modes of new or deleted files"
COUNTS = "corrected line counts"
BLANKS = "restored blank context lines"
LINE_ENDS = "changed line ends to those of the tree"
ZERO = "accepted hunks without context"
TOLERATE = "tolerated white space and distant context"
REPAIRS = (UNFENCE, UNWRAP, LAST_LINE_FEED, STAMPS, PREFIXES, MODES, COUNTS, BLANKS, LINE_ENDS, ZERO, TOLERATE)

APPLY = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "apply", "--whitespace=nowarn"]
TOLERANT = ["--ignore-whitespace", "-C1"]
NULL = b"/dev/null"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_TOUCHED = 1000 * 1000  # bytes of the paths that are recorded
MAX_BLANKS = 10  # context lines that an editor may have removed from the end of a hunk
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)", re.DOTALL)
_EXTENDED = re.compile(
    rb"(old mode|new mode|deleted file mode|new file mode|similarity index|dissimilarity index|rename from|rename to|"
    rb"copy from|copy to|index) "
)
_TIMESTAMP = re.compile(rb"\s+\d{4}-\d\d-\d\d[ T]\d\d:\d\d.*$")
_FENCE = re.compile(rb"(```|~~~)")
_USUAL = re.compile(rb"(diff |Index: |={3,}\s*$|Only in |Binary files |-- ?\s*$|\d+\.\d+[\w.]*( \(.*\))?\s*$|\s*$)")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPED = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
_GIT_PREFIXES = (b"a/", b"b/", b"c/", b"i/", b"o/", b"w/")  # see diff.mnemonicPrefix


class UnsafePathError(ValueError):
    """A patch names a path that is not in the tree, or is git's own."""


class Tree:
    """Files of the tree in `folder`, by paths relative to it."""

    def __init__(self, folder):
        # type: (str) -> None
        self.folder = os.fsencode(folder)

    def has_file(self, path):
        # type: (bytes) -> bool
        """Return whether there is a file or link."""
        full = os.path.join(self.folder, path)
        return os.path.lexists(full) and (os.path.islink(full) or not os.path.isdir(full))

    def has_folder(self, path):
        # type: (bytes) -> bool
        """Return whether there is a folder."""
        return os.path.isdir(os.path.join(self.folder, path))

    def read_lines(self, path):
        # type: (bytes) -> list
        """Return the lines of a regular file without their line feeds; none for anything else."""
        full = os.path.join(self.folder, path)
        if not os.path.isfile(full) or os.path.islink(full):
            return []
        with open(full, "rb") as file:
            return split_lines(file.read())


class Hunk:
    """A hunk: the positions and counts of its header, and its lines as [marker, text]."""

    def __init__(self, header):
        # type: (re.Match) -> None
        old, old_count, new, new_count, self.heading = header.groups()
        self.old, self.new = int(old), int(new)
        self.declared = int(old_count or 1), int(new_count or 1)
        self.lines = []  # type: list
        self.missing_blanks = 0  # context lines by which the declared counts exceed the lines
        self.is_cut = False  # whether git would silently drop its last lines

    def count(self):
        # type: () -> tuple
        """Return the numbers of its old and new lines."""
        return count_lines(self.lines)

    def has_context(self):
        # type: () -> bool
        """Return whether any line is context."""
        return any(marker == b" " for marker, _ in self.lines)

    def render(self, restore_blanks, line_end):
        # type: (bool, object) -> bytes
        r"""Return its text, with counts that fit.

        Args:
            restore_blanks: whether to add the missing context lines.
            line_end: `\r` or nothing, that every line is to have before its line feed; None to leave them.
        """
        lines = self.lines + [(b" ", b"")] * (self.missing_blanks if restore_blanks else 0)
        old, new = count_lines(lines)
        rendered = [b"@@ -%d,%d +%d,%d @@%s" % (self.old, old, self.new, new, self.heading.rstrip(b"\r"))]
        for (marker, text), (following, _) in zip(lines, lines[1:] + [(b"", b"")]):
            has_end = marker != b"\\" and following != b"\\"
            ended = text if line_end is None else text.rstrip(b"\r") + (line_end if has_end else b"")
            rendered.append(marker + ended)
        return b"".join(line + b"\n" for line in rendered)


class FilePatch:
    """The diff of one file: header lines, names as the patch has them, and hunks."""

    def __init__(self):
        # type: () -> None
        self.git_line = b""  # `diff --git ...`, empty in a plain diff
        self.extended = []  # type: list
        self.binary = []  # type: list
        self.old = self.new = b""  # of the lines `---` and `+++`, as written; empty without them
        self.old_tail = self.new_tail = b""  # time stamps
        self.hunks = []  # type: list

    def get_extended(self, word):
        # type: (bytes) -> bytes
        """Return what follows `word` in the extended header, or nothing."""
        return next((line[len(word) + 1 :] for line in self.extended if line.startswith(word + b" ")), b"")

    @property
    def is_new(self):
        # type: () -> bool
        """Whether the file is new by its headers."""
        return self.old == NULL or bool(self.get_extended(b"new file mode")) or is_epoch(self.old_tail)

    @property
    def is_deleted(self):
        # type: () -> bool
        """Whether the file is deleted by its headers."""
        return self.new == NULL or bool(self.get_extended(b"deleted file mode")) or is_epoch(self.new_tail)

    @property
    def is_renamed(self):
        # type: () -> bool
        """Whether the diff renames or copies a file."""
        return all(self.get_renaming())

    def get_renaming(self):
        # type: () -> tuple
        """Return the paths from and to which it renames or copies."""
        return (
            self.get_extended(b"rename from") or self.get_extended(b"copy from"),
            self.get_extended(b"rename to") or self.get_extended(b"copy to"),
        )

    def split_git_line(self):
        # type: () -> tuple
        """Return both names of the line `diff --git`, two empty ones where they cannot be separated."""
        names = self.git_line[len(b"diff --git ") :]
        if names.startswith(b'"'):
            found = re.match(rb'("(?:[^"\\]|\\.)*") (.+)$', names)
            return found.groups() if found else (b"", b"")
        ends = [i for i in range(len(names)) if names[i : i + 1] == b" "]
        pairs = [(names[:i], names[i + 1 :]) for i in ends]
        if self.is_renamed:
            source, target = self.get_renaming()
            pairs = [(old, new) for old, new in pairs if old.endswith(source) and new.endswith(target)]
            return pairs[0] if len(pairs) == 1 else (b"", b"")
        equal = [pair for pair in pairs if pair[0] == pair[1]]
        stripped = [pair for pair in pairs if strip(pair[0], 1) and strip(pair[0], 1) == strip(pair[1], 1)]
        mixed = [pair for pair in pairs if pair[0] == strip(pair[1], 1) or pair[1] == strip(pair[0], 1)]
        return (equal + stripped + mixed + (pairs if len(pairs) == 1 else []) + [(b"", b"")])[0]

    def get_names(self):
        # type: () -> tuple
        """Return the names before and after the change as the patch has them, `/dev/null` for none."""
        old, new = self.split_git_line() if self.git_line else (b"", b"")
        return self.old or (NULL if self.is_new else old), self.new or (NULL if self.is_deleted else new)


class PatchParts:
    """A patch in parts: the diffs of files, and what was found around and in them."""

    def __init__(self, text):
        # type: (bytes) -> None
        self.repairs = set()  # type: set
        if text and not text.endswith(b"\n"):
            self.repairs.add(LAST_LINE_FEED)
            text += b"\r\n" if b"\r\n" in text and text.count(b"\r\n") == text.count(b"\n") else b"\n"
        self.has_mark = text.startswith(BYTE_ORDER_MARK)
        self.lines = split_lines(text[len(BYTE_ORDER_MARK) :] if self.has_mark else text)
        if self.has_mark:
            self.repairs.add(UNWRAP)
        self.has_only_crlf = bool(self.lines) and all(line.endswith(b"\r") for line in self.lines)
        self.files = []  # type: list
        self._parse()

    def _parse(self):
        # type: () -> None
        at = 0
        while at < len(self.lines):
            line = self.lines[at]
            if line.startswith(b"diff --git "):
                at = self._parse_git_header(at)
            elif self._has_names(at):
                self.files.append(FilePatch())
                at = self._parse_names(at)
            elif self.files and self.files[-1].old and _HUNK.match(line):
                at = self._parse_hunk(at)
            else:
                if _FENCE.match(line):
                    self.repairs.add(UNFENCE)
                elif not _USUAL.match(line):
                    self.repairs.add(UNWRAP)
                at += 1

    def _has_names(self, at):
        # type: (int) -> bool
        """Return whether the lines `---` and `+++` of a header and a hunk begin here."""
        three = self.lines[at : at + 3]
        return len(three) == 3 and all(line.startswith(word) for line, word in zip(three, (b"--- ", b"+++ ", b"@@ ")))

    def _parse_git_header(self, at):
        # type: (int) -> int
        file = FilePatch()
        self.files.append(file)
        file.git_line = self.lines[at].rstrip(b"\r")
        at += 1
        while at < len(self.lines) and _EXTENDED.match(self.lines[at]):
            file.extended.append(self.lines[at].rstrip(b"\r"))
            at += 1
        if at < len(self.lines) and self.lines[at].startswith(b"GIT binary patch"):
            while at < len(self.lines) and not self.lines[at].startswith((b"diff --git ", b"-- ", b"```", b"From ")):
                file.binary.append(self.lines[at].rstrip(b"\r"))
                at += 1
            return at
        return self._parse_names(at) if self._has_names(at) else at

    def _parse_names(self, at):
        # type: (int) -> int
        file = self.files[-1]
        file.old, file.old_tail = split_name(self.lines[at][4:])
        file.new, file.new_tail = split_name(self.lines[at + 1][4:])
        if any(tail and b"\t" not in line for tail, line in zip((file.old_tail, file.new_tail), self.lines[at:])):
            self.repairs.add(STAMPS)
        return at + 2

    def _parse_hunk(self, at):
        # type: (int) -> int
        hunk = Hunk(_HUNK.match(self.lines[at]))
        self.files[-1].hunks.append(hunk)
        end = self._find_declared_end(at + 1, hunk.declared)
        hunk.is_cut = end is not None and self._continues(end)
        if end is not None and not hunk.is_cut:
            hunk.lines = [split_marker(line) for line in self.lines[at + 1 : end]]
            return end
        end = at + 1
        while end < len(self.lines) and not self._ends_hunk(end):
            end += 1
        body = [split_marker(line) for line in self.lines[at + 1 : end]]
        written = len(body)
        while body and not self.lines[at + len(body)].strip(b"\r"):  # such lines are context only by the counts
            body.pop()
        hunk.lines = body
        old, new = (declared - count for declared, count in zip(hunk.declared, hunk.count()))
        if old == new and 0 < old <= MAX_BLANKS:
            hunk.missing_blanks = old
            if len(body) + old <= written:
                hunk.lines = [split_marker(line) for line in self.lines[at + 1 : at + 1 + len(body) + old]]
                hunk.missing_blanks = 0
        elif old or new:
            self.repairs.add(COUNTS)
        return end

    def _find_declared_end(self, at, declared):
        # type: (int, tuple) -> object
        """Return the end of a hunk whose lines begin at `at`, by its header; None where its lines do not fit."""
        old, new = declared
        while old > 0 or new > 0:
            if at >= len(self.lines):
                return None
            marker = split_marker(self.lines[at])[0]
            if marker not in (b" ", b"+", b"-", b"\\") or self._has_names(at):
                return None
            old -= marker in (b" ", b"-")
            new -= marker in (b" ", b"+")
            at += 1
        if old < 0 or new < 0:
            return None
        return at + 1 if at < len(self.lines) and self.lines[at].startswith(b"\\ ") else at

    def _continues(self, at):
        # type: (int) -> bool
        """Return whether a line looks like one more line of a hunk."""
        if at >= len(self.lines) or self._ends_hunk(at):
            return False
        return bool(self.lines[at].strip())

    def _ends_hunk(self, at):
        # type: (int) -> bool
        line = self.lines[at]
        if line.rstrip(b"\r") in (b"-- ", b"--"):  # before git's version, at the end of a mail
            following = self.lines[at + 1 : at + 2]
            return not following or bool(re.match(rb"\d+\.\d+|\s*$", following[0]))
        return self._has_names(at) or split_marker(line)[0] not in (b" ", b"+", b"-", b"\\")


# ------------------------------------------------------------------------------------------------------- lines, names


def split_lines(text):
    # type: (bytes) -> list
    """Return the lines of a text without their line feeds."""
    lines = text.split(b"\n")
    return lines[:-1] if not lines[-1] else lines


def count_lines(lines):
    # type: (list) -> tuple
    """Return the numbers of old and new lines among (marker, text)."""
    return sum(marker in b" -" for marker, _ in lines), sum(marker in b" +" for marker, _ in lines)


def split_marker(line):
    # type: (bytes) -> tuple
    """Return marker and text of a hunk's line; an empty line is empty context."""
    return (line[:1], line[1:]) if line.strip(b"\r") else (b" ", line)


def split_name(text):
    # type: (bytes) -> tuple
    """Return name and time stamp of a line `---` or `+++`."""
    text = text.rstrip(b"\r")
    if text.startswith(b'"'):
        found = re.match(rb'"(?:[^"\\]|\\.)*"', text)
        return (found.group(), text[found.end() :]) if found else (text, b"")
    name, tab, tail = text.partition(b"\t")
    if tab:
        return name.rstrip(b" "), tab + tail
    stamp = _TIMESTAMP.search(name)
    return (name[: stamp.start()], b"\t" + stamp.group().strip()) if stamp else (name.rstrip(b" "), b"")


def is_epoch(tail):
    # type: (bytes) -> bool
    """Return whether a time stamp is the one by which diff marks an absent file."""
    found = re.match(rb"\t(1969-12-31|1970-01-01) (\d\d):(\d\d):00(?:\.0+)? ([-+]\d\d)(\d\d)$", tail)
    if not found:
        return False
    day, hours, minutes, zone_hours, zone_minutes = found.groups()
    zone = abs(int(zone_hours)) * 60 + int(zone_minutes)
    clock = int(hours) * 60 + int(minutes) - (24 * 60 if day == b"1969-12-31" else 0)
    return clock == (-zone if zone_hours.startswith(b"-") else zone)


def unquote(name):
    # type: (bytes) -> bytes
    """Return the path that a name stands for, which git quotes if it has special characters."""
    if not name.startswith(b'"'):
        return name

    def replace(found):
        # type: (re.Match) -> bytes
        code = found.group(1)
        return bytes([int(code, 8) & 255]) if len(code) == 3 else _ESCAPED.get(code, code)

    return _ESCAPE.sub(replace, name[1:-1])


def strip(name, level):
    # type: (bytes, int) -> bytes
    """Return a name without its first `level` folders, still quoted; empty where it has no more than that."""
    quote = b'"' if name.startswith(b'"') else b""
    parts = re.split(rb"/+", name[len(quote) :])
    return quote + b"/".join(parts[level:]) if level < len(parts) else b""


def add_prefix(prefix, name):
    # type: (bytes, bytes) -> bytes
    """Return a name, which may be quoted, in a folder."""
    return b'"' + prefix + name[1:] if name.startswith(b'"') else prefix + name


def get_head(name, level):
    # type: (bytes, int) -> bytes
    """Return the first `level` folders of a name with their slashes."""
    return b"".join(part + b"/" for part in unquote(name).split(b"/")[:-1][:level])


def find_common_level(old, new):
    # type: (bytes, bytes) -> object
    """Return how many folders to strip from two names until they are equal; None where they never are."""
    levels = range(0 if NULL in (old, new) else min(old.count(b"/"), new.count(b"/")) + 1)
    return next((level for level in levels if strip(old, level) == strip(new, level) != b""), None)


def check_path(name):
    # type: (bytes) -> None
    """Raise UnsafePathError for a name that is absolute, leaves the tree or is in git's folder."""
    path = unquote(name)
    parts = path.split(b"/")
    is_absolute = path.startswith(b"/") or b"//" in path
    if path != NULL and (is_absolute or b".." in parts or b".git" in [part.lower() for part in parts]):
        raise UnsafePathError("the patch names a path outside of the tree: %s" % ascii(os.fsdecode(path)))


# ----------------------------------------------------------------------------------------------------------- repairs


class Repairer:
    """Makes candidates of a patch for a tree."""

    def __init__(self, text, tree):
        # type: (bytes, Tree) -> None
        """Raise UnsafePathError if the patch names a path outside of the tree."""
        self.text = text
        self.tree = tree
        self.patch = PatchParts(text)
        self.repairs = set(self.patch.repairs)
        self.targets = []  # type: list
        """(old, new) for each diff: paths in the tree, quoted as in the patch, `/dev/null` for none."""
        for file in self.patch.files:
            for word in (b"rename from", b"rename to", b"copy from", b"copy to"):
                check_path(file.get_extended(word))
            for name in file.get_names():
                check_path(name)
        self._choose_targets()
        if any(self._list_missing_modes(file, old) for file, (old, _) in zip(self.patch.files, self.targets)):
            self.repairs.add(MODES)

    def list_touched(self):
        # type: () -> list
        """Return the paths that the patch adds, changes or deletes, sorted."""
        return sorted({unquote(name) for pair in self.targets for name in pair if name not in (NULL, b"")})

    def list_candidates(self):
        # type: () -> list
        """Return (text, options of `git apply`, repairs) in the order in which they are to be tried.

        The untouched patch is the first, unless git would accept it and misread it: drop lines that
        the counts do not cover, put lines without context at the end of a file, or a new file into another folder.
        """
        untouched = (self.text, [], [])  # type: tuple
        files = self.patch.files
        is_cut = any(hunk.is_cut for file in files for hunk in file.hunks)
        bare = [pair for pair in zip(files, self.targets) if self._has_bare_hunk(*pair)]
        has_insertion = any(self._has_bare_hunk(*pair, old_lines=False) for pair in bare)
        is_misread = is_cut or self.patch.has_mark or not self.repairs.isdisjoint((PREFIXES, STAMPS, MODES))
        found = [] if is_misread or has_insertion else [untouched]
        zero = bool(bare) and all(self._fits_exactly(file, old) for file, (old, _) in bare)
        blanks = [True, False] if any(hunk.missing_blanks for file in files for hunk in file.hunks) else [False]
        texts = [self._render(restore_blanks) for restore_blanks in blanks]
        if not has_insertion:
            found += [(text, ["-p1"], names) for text, names in texts]
        if zero:
            found += [(text, ["-p1", "--unidiff-zero"], names | {ZERO}) for text, names in texts]
        if not has_insertion:
            found += [(text, ["-p1"] + TOLERANT, names | {TOLERATE}) for text, names in texts]
            found += [untouched] if is_misread else []
            found.append((self.text, ["--recount"] + TOLERANT, {COUNTS, TOLERATE}))
        seen = []  # type: list
        for text, options, names in found:
            if (text, options) not in [one[:2] for one in seen]:
                seen.append((text, options, [name for name in REPAIRS if name in names]))
        return seen

    def _choose_targets(self):
        # type: () -> None
        """Set the paths that the diffs are about, by the prefixes that lead to files of the tree."""
        files = self.patch.files
        chosen = [self._choose_levels(file) for file in files]
        heads = set()  # type: set
        for file, levels in zip(files, chosen):
            names = zip(file.get_names(), levels or ())
            heads |= {get_head(name, level) for name, level in names if name != NULL}
        for file, levels in zip(files, chosen):
            names = file.get_names()
            if file.is_renamed:
                target = file.get_renaming()
                is_usual = target != names
            elif b"" in names:  # a line `diff --git` without other names stays as it is
                target, is_usual = (b"", b""), True
            else:
                used = levels or self._guess_levels(file, heads)
                target = self._strip_names(names, used)
                is_usual = all(level == 1 or b"/" not in name for name, level in zip(names, used) if name != NULL)
            self.repairs |= set() if is_usual else {PREFIXES}
            self.targets.append(target)

    def _strip_names(self, names, levels):
        # type: (tuple, tuple) -> tuple
        """Return both paths; two names of one file, such as a copy's, become the one that is in the tree."""
        old, new = (name if name == NULL else strip(name, level) for name, level in zip(names, levels))
        if NULL in (old, new) or old == new:
            return old, new
        there = [name for name in (old, new) if name and self.tree.has_file(unquote(name))]
        return (there[0], there[0]) if len(there) == 1 else (old, new)

    def _choose_levels(self, file):
        # type: (FilePatch) -> object
        """Return how many folders to strip from the old and the new name; None where only a guess is possible."""
        names = file.get_names()
        if file.is_new:
            return None
        level = find_common_level(*(names if NULL not in names else file.split_git_line()))
        usual = [(1, 1), (0, 0), (1, 0), (0, 1)]
        for levels in ([] if level is None else [(level, level)]) + usual:
            paths = {strip(name, n) for name, n in zip(names, levels) if name != NULL}
            if len(paths) == 1 and self.tree.has_file(unquote(paths.pop())):
                return levels
        for levels in usual:
            if any(self._is_file_at(name, n) for name, n in zip(names, levels)):
                return levels
        deep = [n for n in range(2, max(name.count(b"/") for name in names) + 1) if self._is_file_at(names[0], n)]
        return (deep[0], deep[0]) if len(deep) == 1 else None

    def _is_file_at(self, name, level):
        # type: (bytes, int) -> bool
        path = strip(name, level)
        return name != NULL and bool(path) and self.tree.has_file(unquote(path))

    def _guess_levels(self, file, heads):
        # type: (FilePatch, set) -> tuple
        """Return how many folders to strip from the names of a file that is not in the tree.

        Args:
            file: its part of the patch.
            heads: prefixes of the patch's other files, `b""` among them if one has none.
        """
        names = file.get_names()
        name = names[0] if names[1] == NULL else names[1]
        known = [head.count(b"/") for head in heads if head and unquote(name).startswith(head)]
        first = get_head(name, 1)
        is_folder = heads == {b""} and self.tree.has_folder(first)
        usual = int(
            first in _GIT_PREFIXES and not is_folder
        )  # where the other name is `/dev/null`, only git writes a prefix
        common = find_common_level(*(names if NULL not in names else file.split_git_line()))
        level = max(known) if known else usual if common is None else common
        return level, level

    def _has_bare_hunk(self, file, target, old_lines=True):
        # type: (FilePatch, tuple, bool) -> bool
        """Return whether a diff changes a file of the tree in a hunk without context; `old_lines`: any such hunk.

        Otherwise only one that also removes nothing counts.
        """
        if file.binary or target[0] in (NULL, b"") or not self.tree.read_lines(unquote(target[0])):
            return False
        hunks = [hunk for hunk in file.hunks if not hunk.has_context() and not hunk.missing_blanks]
        return any(old_lines or not hunk.count()[0] for hunk in hunks)

    def _fits_exactly(self, file, old_name):
        # type: (FilePatch, bytes) -> bool
        """Return whether every hunk's numbers and old lines are those of the tree, line ends aside."""
        lines = self.tree.read_lines(unquote(old_name))
        shift = 0
        for hunk in file.hunks:
            old, new = hunk.count()
            first = hunk.old - 1 if old else hunk.old
            if hunk.new - (1 if new else 0) != first + shift or not 0 <= first <= len(lines) - old:
                return False
            removed = [text.rstrip(b"\r") for marker, text in hunk.lines if marker in b" -"]
            if removed != [line.rstrip(b"\r") for line in lines[first : first + old]]:
                return False
            shift += new - old
        return True

    def _render(self, restore_blanks):
        # type: (bool) -> tuple
        """Return (the repaired text, its repairs)."""
        repairs = set(self.repairs)
        parts = []
        for file, (old, new) in zip(self.patch.files, self.targets):
            if any(hunk.missing_blanks for hunk in file.hunks):
                repairs.add(BLANKS if restore_blanks else COUNTS)
            line_end = self._choose_line_end(file, old)
            repairs |= set() if line_end is None else {LINE_ENDS}
            parts += [line + b"\n" for line in self._render_header(file, old, new)]
            parts += [line + b"\n" for line in file.binary]
            parts += [hunk.render(restore_blanks, line_end) for hunk in file.hunks]
        return b"".join(parts), repairs

    def _list_missing_modes(self, file, old):
        # type: (FilePatch, bytes) -> list
        """Return the lines that git writes, and needs, for a new or deleted file after a line `diff --git`."""
        is_new = file.is_new
        if file.old and file.hunks and not is_new and not self.tree.has_file(unquote(old)):
            is_new = all(hunk.declared[0] == 0 for hunk in file.hunks)
        modes = [word for word, is_so in ((b"new file mode", is_new), (b"deleted file mode", file.is_deleted)) if is_so]
        return [word + b" 100644" for word in modes if file.git_line and not file.get_extended(word)]

    def _render_header(self, file, old, new):
        # type: (FilePatch, bytes, bytes) -> list
        """Return the lines of the header."""
        modes = self._list_missing_modes(file, old)
        lines = []
        if file.git_line:
            paths = (new if old == NULL else old), (old if new == NULL else new)
            names = add_prefix(b"a/", paths[0]), add_prefix(b"b/", paths[1])
            lines = [b"diff --git %s %s" % names if all(paths) else file.git_line] + modes + file.extended
        if file.old:
            is_new = old == NULL or file.is_new or any(mode.startswith(b"new") for mode in modes)
            is_deleted = new == NULL or file.is_deleted
            lines.append(b"--- " + (NULL if is_new else add_prefix(b"a/", old) + file.old_tail))
            lines.append(b"+++ " + (NULL if is_deleted else add_prefix(b"b/", new) + file.new_tail))
        return lines

    def _choose_line_end(self, file, old):
        # type: (FilePatch, bytes) -> object
        """Return the line end of the tree's file where all lines of a diff have the other one; None elsewhere.

        New files get line feeds if the whole patch is in CR LF and a file of the tree that it changes is not.
        """
        ends = {text.endswith(b"\r") for hunk in file.hunks for marker, text in hunk.lines if marker != b"\\"}
        written = b"\r" if self.patch.has_only_crlf or ends == {True} else b"" if ends == {False} else None
        wanted = self._read_line_end(old)
        if old == NULL and self.patch.has_only_crlf and b"" in [self._read_line_end(one) for one, _ in self.targets]:
            wanted = b""
        return None if None in (written, wanted) or written == wanted or not file.hunks else wanted

    def _read_line_end(self, name):
        # type: (bytes) -> object
        r"""Return `\r` for a file whose lines all end in CR LF, nothing for one without any; None for others."""
        lines = self.tree.read_lines(unquote(name)) if name not in (NULL, b"") else []
        ends = {line.endswith(b"\r") for line in lines}
        return None if len(ends) != 1 else b"\r" if ends.pop() else b""


# ------------------------------------------------------------------------------------------------------------ program


def apply_patch(text, folder, options=()):
    # type: (bytes, str, object) -> tuple
    """Apply the first candidate that git accepts and return (whether one applied, its repairs, touched paths).

    Args:
        text: the patch. One of white space alone changes nothing and applies.
        folder: the tree.
        options: further ones of `git apply`.
    """
    if not text.strip():
        return True, [], []
    try:
        repairer = Repairer(text, Tree(folder))
    except UnsafePathError as error:
        print(error)
        return False, [], []
    complaint = ""
    for candidate, needed, repairs in repairer.list_candidates():
        ran = subprocess.run(
            APPLY + list(options) + needed + ["-"],
            cwd=folder,
            input=candidate,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=False,
        )
        if ran.returncode == 0:
            return True, repairs, repairer.list_touched()
        complaint = complaint or ran.stderr.decode("utf-8", "replace").strip()
    print(complaint)
    return False, [], []


def main(words):
    # type: (list) -> int
    """Apply the patch and return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cached", action="store_true")
    parser.add_argument("--record")
    parser.add_argument("patch")
    options = parser.parse_args(words)
    with open(options.patch, "rb") as file:
        text = file.read()
    applied, repairs, touched = apply_patch(text, os.getcwd(), ["--cached"] if options.cached else [])
    if not applied:
        return PATCH_FAILED_EXIT
    if repairs:
        print("applied after: " + ", ".join(repairs))
    if options.record:
        os.makedirs(options.record, mode=0o711, exist_ok=True)
        for name, content in (
            ("repairs", "".join(repair + "\n" for repair in repairs).encode()),
            ("touched", b"".join(path + b"\0" for path in touched)[:MAX_TOUCHED]),
        ):
            with open(os.path.join(options.record, name), "wb") as file:
                file.write(content)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
