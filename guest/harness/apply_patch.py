"""Apply a submission's patch to the tree in the current folder, after repairs of its form where git needs them.

    python3 -I -S apply_patch.py [--cached] [--record FOLDER] PATCH

Runs in a container of the task's image, on Python 3.6 or later, with the standard library only. Exit code 0: applied.
96: the patch does not apply, and the tree is unchanged. FOLDER gets the files `repairs` (the repairs that were made,
one per line) and `touched` (paths that the patch names, each with a NUL).

A repair concerns the form of a patch: headers, counts, line ends, text around it. It never adds, drops or changes an
added or removed line, except for the line ends. A patch that can only be read by dropping such lines is refused. What
has no content in the patch, as a binary file that git did not write, is left out and named.
"""

import argparse
import os
import re
import subprocess
import sys

PATCH_FAILED_EXIT = 96
COLOURS = "removed colours"
UNFENCE = "removed Markdown fences"
UNWRAP = "removed text around the diffs"
LAST_LINE_FEED = "added missing last line feed"
STAMPS = "separated names from time stamps"
PREFIXES = "corrected the prefixes of paths"
MODES = "added missing modes of new or deleted files"
COUNTS = "corrected line counts"
BLANKS = "restored blank context lines"
MARKERS = "restored missing blanks before context lines"
LINE_ENDS = "changed line ends to those of the tree"
ZERO = "accepted hunks without context"
TOLERATE = "tolerated white space and distant context"
NO_CONTENT = "left out binary files without content"  # followed by their names
ABSENT = "left out deletions of binary files that are not there"  # followed by their names
PRESENT = "left out new files that are there already"  # followed by their names
REPAIRS = (
    *(COLOURS, UNFENCE, UNWRAP, LAST_LINE_FEED, STAMPS, PREFIXES, MODES, COUNTS, BLANKS, MARKERS, LINE_ENDS, ZERO),
    *(TOLERATE, NO_CONTENT, ABSENT, PRESENT),
)

GIT = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]
APPLY = GIT + ["apply", "--whitespace=nowarn"]
IGNORE_SPACE = "--ignore-whitespace"
DISTANT = "-C1"
NULL = b"/dev/null"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_TOUCHED = 1000 * 1000  # bytes of the paths that are recorded
MAX_BLANKS = 10  # context lines that an editor may have removed from the end of a hunk
MAX_NAMED = 10  # files that a repair names
MARKERS_OF_LINES = (b" ", b"+", b"-", b"\\")
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)", re.DOTALL)
_EXTENDED = re.compile(
    rb"(old mode|new mode|deleted file mode|new file mode|similarity index|dissimilarity index|rename from|rename to|"
    rb"copy from|copy to|index) "
)
_TIMESTAMP = re.compile(rb"\s+\d{4}-\d\d-\d\d[ T]\d\d:\d\d.*$")
_FENCE = re.compile(rb"(```|~~~)")
_USUAL = re.compile(rb"(diff |Index: |={3,}\s*$|Only in |Binary files |-- ?\s*$|\d+\.\d+[\w.]*( \(.*\))?\s*$|\s*$)")
_BINARY = re.compile(rb"Binary files? (?:(.+) and (.+) differ|(.+) has changed)\r?$")
_CLOSING_FENCE = re.compile(rb"(```+|~~~+)\s*$")
_BESIDE_DIFFS = re.compile(rb"(diff |Index: |={3,}|Only in |Binary files? |-- ?\s*$|```|~~~|\s*$)")
_OTHER_PART = re.compile(rb"(From [0-9a-f]{40} |Property changes on: )")  # a mail, and what Subversion adds
# A hunk without its header, a combined diff, a context diff.
_OTHER_DIFF = re.compile(rb"(@@|\*{15}|\*\*\* \d+(,\d+)? \*\*\*\*)")
_COLOUR = re.compile(rb"(\x1b\[[0-9;]*m)")
_ERASE = re.compile(rb"\x1b\[[0-9;]*K")
_COLOURED_HEADER = re.compile(rb"(?m)^(?:\x1b\[[0-9;]*[mK])+(?:diff --git |--- |\+\+\+ |@@ )")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPED = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
_GIT_PREFIXES = (b"a/", b"b/", b"c/", b"i/", b"o/", b"w/")  # see diff.mnemonicPrefix


class RefusedPatchError(ValueError):
    """A patch names a path that is not in the tree or is git's own, or cannot be read without dropping lines."""


class Tree:
    """Files of the tree in `folder`, by paths relative to it."""

    def __init__(self, folder, is_cached=False):
        # type: (str, bool) -> None
        """Read the tree in `folder`; `is_cached`: whether the patch is for its index."""
        self.folder = os.fsencode(folder)
        self.is_cached = is_cached

    def has_file(self, path):
        # type: (bytes) -> bool
        """Return whether there is a file or link."""
        full = os.path.join(self.folder, path)
        return os.path.lexists(full) and (os.path.islink(full) or not os.path.isdir(full))

    def has_folder(self, path):
        # type: (bytes) -> bool
        """Return whether there is a folder."""
        return os.path.isdir(os.path.join(self.folder, path))

    def read_file(self, path):
        # type: (bytes) -> object
        """Return the content of a regular file, or the target of a link; None for anything else."""
        full = os.path.join(self.folder, path)
        if os.path.islink(full):
            return os.readlink(full)
        if not os.path.isfile(full):
            return None
        with open(full, "rb") as file:
            return file.read()

    def read_lines(self, path):
        # type: (bytes) -> list
        """Return the lines of a regular file without their line feeds; none for anything else."""
        is_regular = self.read_mode(path).startswith(b"100")
        return split_lines(self.read_file(path) or b"") if is_regular else []

    def read_mode(self, path):
        # type: (bytes) -> bytes
        """Return git's mode of a file or link, such as `100644`; nothing for anything else."""
        full = os.path.join(self.folder, path)
        if os.path.islink(full):
            return b"120000"
        if not os.path.isfile(full):
            return b""
        return b"100755" if os.stat(full).st_mode & 0o100 else b"100644"

    def read_object_id(self, path):
        # type: (bytes) -> bytes
        """Return the id that git gives the content of a file, in full; nothing where git fails."""
        words = ["rev-parse", "--verify", "-q", b":0:" + path] if self.is_cached else ["hash-object", "--", path]
        ran = subprocess.run(GIT + words, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        return ran.stdout.strip() if ran.returncode == 0 else b""


class Hunk:
    """A hunk: the positions and counts of its header, and its lines as [marker, text].

    `block`: the lines from its header to the next header of the patch, as written. They end with text that is no part
    of the hunk, if the patch has any there.
    """

    def __init__(self, header, block, in_fence, is_last):
        # type: (re.Match, list, bool, bool) -> None
        """Read a hunk; `in_fence`: whether a fence is open before it, `is_last`: whether no header follows."""
        old, old_count, new, new_count, self.heading = header.groups()
        self.old, self.new = int(old), int(new)
        self.declared = int(old_count or 1), int(new_count or 1)
        self.block, self.in_fence, self.is_last = block, in_fence, is_last
        self.lines = []  # type: list
        self.length = 0  # number of lines of the block that are the hunk's
        self.missing_blanks = 0  # context lines by which the declared counts exceed the lines
        self.is_complete = False  # whether the declared counts are those of `lines`
        self.needs_blanks = False  # whether it may only be applied with them
        self.is_cut = False  # whether git would silently drop its last lines
        self._read_markers()

    def _read_markers(self):
        # type: () -> None
        """Set the lines by their markers and the declared counts."""
        end = self.find_declared_end()
        self.is_complete = end is not None
        self.set_lines(0 if end is None else end)
        if end is None:
            self._read_to_end()

    def set_lines(self, end):
        # type: (int) -> None
        """Take the first `end` lines of the block."""
        self.lines = [split_marker(line) for line in self.block[:end]]
        self.length = end

    def find_marked_end(self, at=0):
        # type: (int) -> int
        """Return where the lines with markers end that begin at a line of the block."""
        while at < len(self.block) and not ends_hunk(self.block, at):
            at += 1
        return at

    def extend(self):
        # type: () -> None
        """Add the lines that follow those which the counts cover."""
        self.set_lines(self.find_marked_end(self.length))
        self.is_complete, self.is_cut = False, True
        self._strip_blanks()

    def _read_to_end(self):
        # type: () -> None
        """Take all lines with markers; blank lines at the end are context only as far as the counts cover them."""
        self.set_lines(self.find_marked_end())
        written = self.length
        self._strip_blanks()
        kept = self.length
        old, new = (declared - count for declared, count in zip(self.declared, self.count()))
        if old == new and 0 < old <= MAX_BLANKS:
            if kept + old <= written:
                self.set_lines(kept + old)
                self.is_complete = True
            else:
                self.missing_blanks = old

    def _strip_blanks(self):
        # type: () -> None
        end = self.length
        while end and not self.block[end - 1].strip(b"\r"):
            end -= 1
        self.set_lines(end)

    def find_declared_end(self):
        # type: () -> object
        """Return the end of the hunk by its counts; None where its lines do not fit them."""
        old, new = self.declared
        at = 0
        while old > 0 or new > 0:
            marker = split_marker(self.block[at])[0] if at < len(self.block) else b""
            if marker not in MARKERS_OF_LINES:
                return None
            old -= marker in (b" ", b"-")
            new -= marker in (b" ", b"+")
            at += 1
        if old < 0 or new < 0:
            return None
        return at + 1 if at < len(self.block) and self.block[at].startswith(b"\\ ") else at

    def is_followed(self):
        # type: () -> bool
        """Return whether a line with a marker follows that the counts do not cover."""
        return self.length < len(self.block) and self.block[self.length].startswith((b" ", b"+", b"-"))

    def has_right_balance(self):
        # type: () -> bool
        """Return whether it adds as many lines to the file as its header declares.

        A line that lost the marker of an added or removed line changes that number, one that lost a blank does not.
        """
        old, new = self.count()
        return new - old == self.declared[1] - self.declared[0]

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
        self.has_no_data = False  # whether the patch has only `Binary files ... differ` of it
        self.is_left_out = False  # whether nothing of the diff is applied
        self.keeps_mode = False  # whether only the mode of the file is applied
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
    """A patch in parts: the diffs of files, and the repairs of the text around and in them."""

    def __init__(self, text):
        # type: (bytes) -> None
        self.repairs = set()  # type: set
        self.in_fence = False
        if _COLOURED_HEADER.search(text):
            self.repairs.add(COLOURS)
            text = remove_colours(text)
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
        at = text = 0
        while at < len(self.lines):
            line = self.lines[at]
            is_hunk = bool(self.files and self.files[-1].old and _HUNK.match(line))
            if not (is_hunk or self._begins_file(at)):
                at += 1
                continue
            self.read_text(self.lines[text:at])
            if line.startswith(b"diff --git "):
                at = self._parse_git_header(at)
            elif is_hunk:
                at = self._parse_hunk(at)
            elif _BINARY.match(line):
                at = self._parse_binary_line(at)
            else:
                self.files.append(FilePatch())
                at = self._parse_names(at)
            text = at
        self.read_text(self.lines[text:])

    def _begins_file(self, at):
        # type: (int) -> bool
        """Return whether the diff of a file begins here."""
        line = self.lines[at]
        return line.startswith(b"diff --git ") or self._has_names(at) or bool(_BINARY.match(line))

    def read_text(self, lines):
        # type: (list) -> None
        """Note the repairs that take away text which is no part of a hunk.

        Raises:
            RefusedPatchError: it is a diff that is not read.
        """
        self.note_text(lines)
        for line, following in zip(lines, lines[1:] + [b""]):
            if _CLOSING_FENCE.match(line) or is_signature(line, following) or _OTHER_PART.match(line):
                break
            if _OTHER_DIFF.match(line) or (line.startswith(b"--- ") and following.startswith(b"+++ ")):
                raise RefusedPatchError("part of the patch cannot be read: %s" % show(line))
            if self.files and line.startswith((b"+", b"--- ")):
                raise RefusedPatchError("a line of the patch is in no hunk: %s" % show(line))

    def note_text(self, lines):
        # type: (list) -> None
        """Note the repairs that take away lines."""
        for line in lines:
            if _FENCE.match(line):
                self.repairs.add(UNFENCE)
                self.in_fence = not self.in_fence
            elif not _USUAL.match(line):
                self.repairs.add(UNWRAP)

    def _parse_binary_line(self, at):
        # type: (int) -> int
        """Read the line that diff writes of two binary files."""
        file = FilePatch()
        self.files.append(file)
        old, new, changed = _BINARY.match(self.lines[at]).groups()
        file.old, file.new = (changed, changed) if changed else (old, new)
        file.has_no_data = True
        return at + 1

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
        if at < len(self.lines) and _BINARY.match(self.lines[at]):
            file.has_no_data = True
            return at + 1
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
        limit = at + 1
        while limit < len(self.lines) and not (self._begins_file(limit) or _HUNK.match(self.lines[limit])):
            limit += 1
        block = self.lines[at + 1 : limit]
        hunk = Hunk(_HUNK.match(self.lines[at]), block, self.in_fence, limit == len(self.lines))
        self.files[-1].hunks.append(hunk)
        self.in_fence ^= sum(bool(_FENCE.match(line)) for line in block) % 2 == 1
        return limit


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


def ends_hunk(lines, at):
    # type: (list, int) -> bool
    """Return whether a line is no part of a hunk, by its marker."""
    following = lines[at + 1] if at + 1 < len(lines) else b""
    return is_signature(lines[at], following) or split_marker(lines[at])[0] not in MARKERS_OF_LINES


def is_signature(line, following):
    # type: (bytes, bytes) -> bool
    """Return whether a line, with the one that follows it, stands before git's version at the end of a mail."""
    return line.rstrip(b"\r") in (b"-- ", b"--") and bool(re.match(rb"\d+\.\d+|\s*$", following))


def is_same(line, other):
    # type: (bytes, bytes) -> bool
    """Return whether two lines are equal, line ends aside."""
    return line.rstrip(b"\r") == other.rstrip(b"\r")


def ascii_path(path):
    # type: (bytes) -> str
    """Return a path for a message, with escapes for characters that cannot be printed."""
    text = path.decode("utf-8", "replace")
    return text if text.isprintable() else ascii(text)[1:-1]


def show(line):
    # type: (bytes) -> str
    """Return a line of a patch for a message."""
    return ascii(line[:80].decode("utf-8", "replace"))


def remove_colours(text):
    # type: (bytes) -> bytes
    """Return a patch without the colours of `git diff --color`.

    Raises:
        RefusedPatchError: escape sequences in an added line are not those of git, and may be its content.
    """
    lines = []
    for line in text.split(b"\n"):
        parts = _COLOUR.split(_ERASE.sub(b"", line))
        bare = b"".join(parts[::2])
        if bare.startswith(b"+") and not bare.startswith(b"+++ "):  # git writes a colour, text and a reset in turn
            resets = [code in (b"\x1b[m", b"\x1b[0m") for code in parts[1::2]]
            if resets != [False, True] * (len(resets) // 2):
                raise RefusedPatchError("escape sequences of an added line are not all colours: %s" % show(line))
        lines.append(bare)
    return b"\n".join(lines)


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
    """Raise RefusedPatchError for a name that is absolute, leaves the tree or is in git's folder."""
    path = unquote(name)
    parts = path.split(b"/")
    is_absolute = path.startswith(b"/") or b"//" in path
    if path != NULL and (is_absolute or b".." in parts or b".git" in [part.lower() for part in parts]):
        raise RefusedPatchError("the patch names a path outside of the tree: %s" % ascii(os.fsdecode(path)))


# ------------------------------------------------------------------------------------------------------------- hunks


class TreeLines:
    """Lines of a file of the tree, with an index by which hunks are found in them."""

    def __init__(self, lines):
        # type: (list) -> None
        self.lines = lines
        self.places = {}  # type: dict
        """Line without its line end -> its positions."""
        for at, line in enumerate(lines):
            self.places.setdefault(line.rstrip(b"\r"), []).append(at)
        self.words = {b"".join(line.split()) for line in lines}

    def has(self, at, line):
        # type: (int, bytes) -> bool
        """Return whether a line stands at a position, line ends aside."""
        return at < len(self.lines) and self.lines[at].rstrip(b"\r") == line.rstrip(b"\r")

    def list_places(self, lines):
        # type: (list) -> list
        """Return the positions at which some line of a hunk may begin, by its first line that is not added."""
        first = next((line for line in lines if not line.startswith(b"+")), None)
        if first is None:
            return []
        texts = {first.rstrip(b"\r"), split_marker(first)[1].rstrip(b"\r")}
        return sorted({at for text in texts for at in self.places.get(text, ())})


class HunkReader:
    """Decides which lines of a block are a hunk's, where markers and counts leave that open, by the lines of the tree.

    A line without a marker is context that lost its blank if the tree has it there and the counts agree.
    """

    def __init__(self, hunk, tree):
        # type: (Hunk, TreeLines) -> None
        self.hunk, self.tree = hunk, tree

    def read(self):
        # type: () -> set
        """Set the lines of the hunk and return the repairs.

        Raises:
            RefusedPatchError: lines would be dropped.
        """
        hunk = self.hunk
        if hunk.is_complete and self._continues():
            hunk.extend()
        dropped = self._find_dropped(hunk.lines, hunk.length)
        repairs = set()  # type: set
        if dropped is not None or (not hunk.is_complete and self._may_lack_blanks()):
            repairs = self.restore_markers()
            if dropped is not None and not repairs:
                raise RefusedPatchError("a line may be part of a hunk: %s" % show(hunk.block[hunk.length]))
        if self._looks_cut_off():
            if not hunk.missing_blanks:
                raise RefusedPatchError("the last hunk has fewer lines than it declares, and seems to be cut off")
            hunk.needs_blanks = True
        if hunk.count() != hunk.declared and not hunk.missing_blanks:
            if self._may_lack_markers():
                raise RefusedPatchError("an empty line of a hunk may lack its marker, by the counts of the header")
            repairs.add(COUNTS)
        return repairs

    def restore_markers(self):
        # type: () -> set
        """Read the hunk where all of it fits the tree, and return the repairs; none if it fits nowhere."""
        hunk = self.hunk
        for end in self._list_ends():
            for is_context in (False, True):
                places = range(len(self.tree.lines)) if is_context else self.tree.list_places(hunk.block[:end])
                for start in sorted(places, key=lambda place: abs(place - hunk.old + 1)):
                    lines = self._read_at(start, end, is_context)
                    if lines is not None and self._is_acceptable(lines, is_context):
                        return self._take(lines)
        return set()

    def _take(self, lines):
        # type: (list) -> set
        """Set the lines of the hunk and return the repairs."""
        hunk = self.hunk
        hunk.lines, hunk.length, hunk.missing_blanks, hunk.is_cut = lines, len(lines), 0, True
        hunk.is_complete = hunk.count() == hunk.declared
        written = [split_marker(line) for line in hunk.block]
        return {COUNTS if all(line == other for line, other in zip(lines, written)) else MARKERS}

    def _continues(self):
        # type: () -> bool
        """Return whether lines that the counts do not cover are nevertheless the hunk's."""
        hunk = self.hunk
        following = hunk.block[hunk.length : hunk.find_marked_end(hunk.length)]
        if any(self._is_change(line) for line in following):
            return True
        has_end = bool(hunk.lines) and hunk.lines[-1][0] == b" "
        return bool(following) and bool(following[0].strip(b"\r")) and not has_end

    def _is_change(self, line):
        # type: (bytes) -> bool
        """Return whether a line with a marker changes the file; a list in prose removes nothing that the tree has."""
        return line.startswith(b"+") or (line.startswith(b"-") and b"".join(line[1:].split()) in self.tree.words)

    def _may_lack_blanks(self):
        # type: () -> bool
        """Return whether a hunk with other counts may have lost blanks, at its end or before `+` and `-`."""
        hunk = self.hunk
        following = hunk.block[hunk.length : hunk.length + 1]
        is_open = bool(following) and not _BESIDE_DIFFS.match(following[0])
        return is_open or any(
            line.startswith((b"+", b"-")) and line.rstrip(b"\r") in self.tree.places for line in hunk.block
        )

    def _may_lack_markers(self):
        # type: () -> bool
        """Return whether the counts would fit if some empty lines were added or removed lines, and no context."""
        hunk = self.hunk
        n_empty = sum(not line.strip(b"\r") for line in hunk.block[: hunk.length])
        more = sorted(count - declared for count, declared in zip(hunk.count(), hunk.declared))
        return more[0] == 0 and 0 < more[1] <= n_empty

    def _find_dropped(self, lines, length):
        # type: (list, int) -> object
        """Return the first line after a hunk of which it is not certain that it is no part of it; None without any.

        Args:
            lines: lines of the hunk.
            length: their number in the block.
        """
        block = self.hunk.block
        is_complete = count_lines(lines) == self.hunk.declared
        is_sure = is_complete
        rest = block[length:]
        if rest and not _BESIDE_DIFFS.match(rest[0]):
            is_wrapped = bool(lines) and lines[-1][0] in b"+-"
            if is_wrapped or not is_complete:
                return rest[0]
        for line, following in zip(rest, rest[1:] + [b""]):
            if is_signature(line, following) or _OTHER_PART.match(line):
                return None
            if self.hunk.in_fence and _CLOSING_FENCE.match(line):
                if is_complete:
                    return None
                is_sure = True
            is_open = not is_sure and line.startswith((b"-", b" ")) and bool(line.strip())
            if _OTHER_DIFF.match(line) or self._is_change(line) or is_open:
                return line
        return None

    def _list_ends(self):
        # type: () -> list
        """Return where the hunk may end: where the counts are reached, and after its last change."""
        block = self.hunk.block
        old, new = self.hunk.declared
        at = 0
        while at < len(block) and (old > 0 or new > 0):
            old -= not block[at].startswith((b"+", b"\\"))
            new -= not block[at].startswith((b"-", b"\\"))
            at += 1
        at += at < len(block) and block[at].startswith(b"\\ ")
        last = max([n for n, line in enumerate(block) if self._is_change(line)] or [-1]) + 1
        last += last < len(block) and block[last].startswith(b"\\ ")
        return ([at] if (old, new) == (0, 0) else []) + ([last] if last else [])

    def _read_at(self, start, end, is_context):
        # type: (int, int, bool) -> object
        """Return the lines of a hunk that begins at a line of the tree, and context that follows; None if one differs.

        Args:
            start: position in the tree.
            end: number of lines of the block that are surely the hunk's.
            is_context: whether lines of the tree that begin with `+` or `-` are context that lost its blank.
        """
        at, lines = start, []
        for n, line in enumerate(self.hunk.block):
            marker, text = split_marker(line)
            is_there = self.tree.has(at, line) and (is_context or marker not in (b"+", b"-", b"\\"))
            if marker == b" " and self.tree.has(at, text):
                lines.append((b" ", text))
            elif is_there:
                lines.append((b" ", line))
            elif n >= end:
                break
            elif marker in (b"+", b"\\") or (marker == b"-" and self.tree.has(at, text)):
                lines.append((marker, text))
            else:
                return None
            at += lines[-1][0] in b" -"
        return lines

    def _is_acceptable(self, lines, is_context):
        # type: (list, bool) -> bool
        """Return whether a reading agrees with the counts and leaves nothing out."""
        old, new = count_lines(lines)
        is_balanced = new - old == self.hunk.declared[1] - self.hunk.declared[0]
        fits = (old, new) == self.hunk.declared or (is_balanced and not is_context)
        has_changes = any(marker in b"+-" for marker, _ in lines)
        return fits and has_changes and self._find_dropped(lines, len(lines)) is None

    def _looks_cut_off(self):
        # type: () -> bool
        """Return whether the patch ends in a hunk that lacks lines, with less context than it begins with, or none.

        At the end of a file there is no more of it.
        """
        hunk = self.hunk
        missing = [declared - count for declared, count in zip(hunk.declared, hunk.count())]
        if not hunk.is_last or min(missing) < 0 or not any(missing) or b"".join(hunk.block[hunk.length :]).strip():
            return False
        kept = [text for marker, text in hunk.lines if marker in b" -"]
        at = len(self.tree.lines) - len(kept)
        if not self.tree.lines or at < 0 or all(self.tree.has(at + n, text) for n, text in enumerate(kept)):
            return False
        changes = [n for n, (marker, _) in enumerate(hunk.lines) if marker in b"+-"]
        usual = 1 if hunk.old > 1 else 3  # at the begin of a file there is less context before the changes
        return bool(changes) and len(hunk.lines) - 1 - changes[-1] < max(changes[0], usual)


# ----------------------------------------------------------------------------------------------------------- repairs


class Repairer:
    """Makes candidates of a patch for a tree."""

    def __init__(self, text, tree):
        # type: (bytes, Tree) -> None
        """Raise RefusedPatchError if it names a path outside of the tree, or is only readable without some lines."""
        self.text = text
        self.tree = tree
        self.patch = PatchParts(text)
        self.repairs = set(self.patch.repairs)
        self.named = {}  # type: dict
        """Repair -> paths that it is about."""
        self.targets = []  # type: list
        """(old, new) for each diff: paths in the tree, quoted as in the patch, `/dev/null` for none."""
        for file in self.patch.files:
            for word in (b"rename from", b"rename to", b"copy from", b"copy to"):
                check_path(file.get_extended(word))
            for name in file.get_names():
                check_path(name)
        self._choose_targets()
        for file, target in zip(self.patch.files, self.targets):
            self._read_hunks(file, target[0])
            self._leave_out(file, target)
        if all(file.is_left_out for file in self.patch.files) and NO_CONTENT in self.named:
            raise RefusedPatchError("the patch has nothing but binary files without their content")
        if any(self._list_missing_modes(file, old) for file, (old, _) in zip(self.patch.files, self.targets)):
            self.repairs.add(MODES)

    def _read_hunks(self, file, old):
        # type: (FilePatch, bytes) -> None
        """Set the lines of the hunks."""
        if not file.hunks:
            return
        tree = TreeLines(self.tree.read_lines(unquote(old)) if old not in (NULL, b"") else [])
        readers = [HunkReader(hunk, tree) for hunk in file.hunks]
        for reader in readers:
            self.repairs |= reader.read()
            self.patch.note_text(reader.hunk.block[reader.hunk.length :])
        if MARKERS in self.repairs:  # blanks that an indented line lost are only seen in the tree
            for reader in readers:
                self.repairs |= reader.restore_markers() & {MARKERS}
        self.repairs |= self.patch.repairs

    def _leave_out(self, file, target):
        # type: (FilePatch, tuple) -> None
        """Mark the diff of a file that is there already, or without its content; name it in a repair."""
        old, new = target
        name = new if new not in (NULL, b"") else old
        name = name or file.get_names()[1]
        path = unquote(name)
        if old == NULL and self._is_present(file, path):
            file.is_left_out = not self._render_mode(file, path)
            file.keeps_mode = not file.is_left_out
            self.named.setdefault(PRESENT, []).append(path)
        elif file.has_no_data and file.is_deleted:
            if not self.tree.has_file(path):
                file.is_left_out = True
                self.named.setdefault(ABSENT, []).append(path)
        elif file.has_no_data:
            is_named = self._has_new_id(file, path)
            file.extended = [line for line in file.extended if not line.startswith(b"index ")]
            file.is_left_out = not (file.is_renamed or file.get_extended(b"new mode"))
            self.named.setdefault(PRESENT if is_named else NO_CONTENT, []).append(path)

    def _has_new_id(self, file, path):
        # type: (FilePatch, bytes) -> bool
        """Return whether the file in the tree is the new one, by git's id of the content."""
        new_id = file.get_extended(b"index").partition(b"..")[2].partition(b" ")[0]
        is_id = len(new_id) >= 7 and bool(new_id.strip(b"0"))
        return is_id and self.tree.has_file(path) and self.tree.read_object_id(path).startswith(new_id)

    def _is_present(self, file, path):
        # type: (FilePatch, bytes) -> bool
        """Return whether the tree has a new file already, with the same content."""
        mode = self.tree.read_mode(path)
        if not mode or (mode == b"120000") != (file.get_extended(b"new file mode") == b"120000"):
            return False
        if file.binary or file.has_no_data:
            return self._has_new_id(file, path)
        content = self.tree.read_file(path) or b""
        lines = [line for hunk in file.hunks for line in hunk.lines]
        text = b"".join(text + b"\n" for marker, text in lines if marker == b"+")
        text = text[:-1] if lines and lines[-1][0] == b"\\" else text
        if self.patch.has_only_crlf:
            text, content = text.replace(b"\r\n", b"\n"), content.replace(b"\r\n", b"\n")
        return text == content and all(marker in (b"+", b"\\") for marker, _ in lines)

    def _render_mode(self, file, path):
        # type: (FilePatch, bytes) -> list
        """Return the lines that give a file of the tree the mode of the patch, none if it has that."""
        modes = self.tree.read_mode(path), file.get_extended(b"new file mode")
        if modes[1] in (modes[0], b""):
            return []
        return [b"old mode " + modes[0], b"new mode " + modes[1]]

    def list_touched(self):
        # type: () -> list
        """Return the paths that the patch adds, changes or deletes, sorted."""
        pairs = [pair for file, pair in zip(self.patch.files, self.targets) if not file.is_left_out]
        return sorted({unquote(name) for pair in pairs for name in pair if name not in (NULL, b"")})

    def list_candidates(self):
        # type: () -> list
        """Return (text, options of `git apply`, repairs) in the order in which they are to be tried.

        The untouched patch is the first, unless git would accept it and misread it: drop lines that
        the counts do not cover, put lines without context at the end of a file, or a new file into another folder.
        """
        untouched = (self.text, [], [])  # type: tuple
        files = self.patch.files
        is_cut = any(hunk.is_cut for file in files for hunk in file.hunks)
        is_rewritten = is_cut or COLOURS in self.repairs or any(file.has_no_data for file in files) or bool(self.named)
        bare = [pair for pair in zip(files, self.targets) if self._has_bare_hunk(*pair)]
        has_insertion = any(self._has_bare_hunk(*pair, old_lines=False) for pair in bare)
        is_misread = is_rewritten or self.patch.has_mark or not self.repairs.isdisjoint((PREFIXES, STAMPS, MODES))
        candidates = [] if is_misread or has_insertion else [untouched]
        texts = self._list_texts()
        if not has_insertion:
            candidates += [(text, ["-p1"], names) for text, names in texts]
        if bare and all(self._fits_exactly(file, old) for file, (old, _) in bare):
            candidates += [(text, ["-p1", "--unidiff-zero"], names | {ZERO}) for text, names in texts]
        if not has_insertion:
            for text, names in texts:
                tolerance = self._choose_tolerance(names)
                candidates += [(text, ["-p1"] + tolerance, names | {TOLERATE})] if tolerance else []
            candidates += [untouched] if is_misread and not is_rewritten else []
        distinct = []  # type: list
        for text, options, names in candidates:
            if (text, options) not in [candidate[:2] for candidate in distinct]:
                distinct.append((text, options, self._describe_repairs(names)))
        return distinct

    def _list_texts(self):
        # type: () -> list
        """Return (text, repairs) of the repaired patch, with the missing blank lines and, where it may be, without."""
        hunks = [hunk for file in self.patch.files for hunk in file.hunks]
        blanks = [True] if any(hunk.missing_blanks for hunk in hunks) else []
        blanks += [] if any(hunk.needs_blanks for hunk in hunks) else [False]
        texts = [self._render(restore_blanks) for restore_blanks in blanks]
        return [(text, names) for text, names in texts if text or self.named]

    def _choose_tolerance(self, names):
        # type: (set) -> list
        """Return the options of git for context that differs from the tree's.

        Where the counts do not cover all lines of a hunk, or more, a line may have lost its marker or another may have
        come in, so all of them have to fit. Where a hunk does not add as many lines as it declares, white space decides
        as well.
        """
        hunks = [hunk for file in self.patch.files for hunk in file.hunks]
        is_sure = names.isdisjoint((COUNTS, BLANKS)) and not any(hunk.is_followed() for hunk in hunks)
        if is_sure:
            return [IGNORE_SPACE, DISTANT]
        return [IGNORE_SPACE] if all(hunk.has_right_balance() for hunk in hunks) else []

    def _describe_repairs(self, names):
        # type: (object) -> list
        """Return the repairs in order, with the files that are left out."""
        descriptions = []
        for name in REPAIRS:
            paths = self.named.get(name, [])
            if paths:
                shown = [ascii_path(path) for path in paths[:MAX_NAMED]]
                more = ["%d more" % (len(paths) - MAX_NAMED)] if len(paths) > MAX_NAMED else []
                descriptions.append("%s (%s)" % (name, ", ".join(shown + more)))
            elif name in names:
                descriptions.append(name)
        return descriptions

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
            if file.is_left_out:
                continue
            line_end = self._choose_line_end(file, old)
            repairs |= set() if line_end is None else {LINE_ENDS}
            parts += [line + b"\n" for line in self._render_header(file, old, new)]
            if not file.keeps_mode:
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
        if file.keeps_mode:
            names = add_prefix(b"a/", new), add_prefix(b"b/", new)
            return [b"diff --git %s %s" % names] + self._render_mode(file, unquote(new))
        if file.has_no_data and file.is_deleted:
            return self._render_deletion(file, old)
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

    def _render_deletion(self, file, old):
        # type: (FilePatch, bytes) -> list
        """Return the diff that deletes a binary file, for which git needs the id of its content in full."""
        names = add_prefix(b"a/", old), add_prefix(b"b/", old)
        old_id = self.tree.read_object_id(unquote(old))
        mode = file.get_extended(b"deleted file mode") or self.tree.read_mode(unquote(old))
        return [
            b"diff --git %s %s" % names,
            b"deleted file mode " + mode,
            b"index %s..%s" % (old_id, b"0" * len(old_id)),
            b"Binary files %s and /dev/null differ" % names[0],
        ]

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
        repairer = Repairer(text, Tree(folder, "--cached" in options))
    except RefusedPatchError as error:
        print_ascii(str(error))
        return False, [], []
    complaint = ""
    for candidate, needed, repairs in repairer.list_candidates():
        if not candidate:  # all of its files are there already
            return True, repairs, []
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
    print_ascii(complaint)
    return False, [], []


def print_ascii(text):
    # type: (str) -> None
    """Print a text; older Pythons cannot print other characters in a container without a locale."""
    print(text.encode("ascii", "backslashreplace").decode())


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
        print_ascii("applied after: " + ", ".join(repairs))
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
