"""Rules for test files of any language, by regular expressions over their lines. They know no scopes and no values."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from posixpath import basename

from languages.test_faults import TestFault, TestFaultReason

SEARCHERS = frozenset(
    (
        *("ack", "ag", "awk", "bat", "cat", "cut", "diff", "egrep", "fgrep", "file", "find", "fold", "grep", "head"),
        *("less", "ls", "more", "nl", "od", "rg", "sed", "sort", "strings", "tac", "tail", "wc", "xxd"),
    )
)
"""Programs that print or search files."""
_STRING = re.compile(r"\"((?:\\.|[^\"\\\n])*)\"|'((?:\\.|[^'\\\n])*)'|`((?:\\.|[^`\\])*)`")
_READS = re.compile(
    r"\breadFile(Sync)?\b|\bcreateReadStream\b|\bos\.(ReadFile|Open)\b|\bioutil\.ReadFile\b|\bFile\.(read|open|readlines|"
    r"foreach)\b|\bIO\.(read|readlines)\b|\bfs::read|\bFile::open\b|\binclude_(str|bytes)!|\bFiles\.(read|lines|newBuf)|"
    r"\bnew (File|FileReader|FileInputStream|Scanner)\(|\bf?open\(|\bi?fstream\b|\bfile_get_contents\(|\bfile\(|"
    r"\b(go/)?parser\.ParseFile\b|\bReflectionClass\b.*getFileName|\b__FILE__\b|\bBun\.file\b|\bDeno\.read"
)
_WRITES = re.compile(
    r"\b(writeFile|appendFile)(Sync)?\b|\bos\.WriteFile\b|\bFile\.write\b|\bfs::write\b|\bFiles\.write|\bfile_put_contents\("
)
_STARTS = re.compile(
    r"\b(exec|execSync|execFile|execFileSync|spawn|spawnSync|popen|system|shell_exec|passthru|ProcessBuilder|"
    r"Command(::new|\()|exec\.Command|Open3\.\w+)\b|%x[{(]|\bRuntime\.getRuntime\(\)"
)
_GIT = re.compile(r"(^|/)\.git(/|$)|\bgit2::|\bgo-git\b|\bsimple-git\b|\bnodegit\b|\brugged\b")
_SKIPS = re.compile(
    r"\b(it|test|describe|context)\.(skip|todo|skipIf|runIf|fails|failing)\b|\bx(it|describe|test)\(|\bt\.Skip(f|Now)?\(|"
    r"@(Disabled|Ignore|Enabled|DisabledIf|EnabledIf)\b|#\[ignore|\bassum(e|ing)(True|False|That)\b|\bmarkTestSkipped\b|"
    r"\bmarkTestIncomplete\b|\bGTEST_SKIP\b|^\s*skip\b|\bpending\("
)
_ENDS = re.compile(
    r"\bprocess\.(exit|abort)\(|\bos\.Exit\(|\bSystem\.exit\(|\b(std::)?process::exit\(|\bexit!?\(|\bdie\(|\b_exit\("
)
_ASSERTS = re.compile(
    r"\bexpect\b|\bassert|\bshould\b|\.to(Be|Equal)|\bt\.(Error|Errorf|Fatal|Fatalf|Fail|FailNow)\b|\brequire\.|\bverify|"
    r"\b(EXPECT|ASSERT|REQUIRE|CHECK)(_|\()|\bpanic!|\bshould_panic|\bmust_|\bis\(|\bok\(|\bthrows\b"
)
_CALL = re.compile(r"[\w)\]]\s*\(|!\(|^\s*[a-z_]\w*\.\w+ ")


def find_test_fault(text: str, sources: Collection[str]) -> TestFault | None:
    """Return the first fault of a test file of any language.

    Args:
        text: the test file.
        sources: paths of the program's files, relative to the root of the tree.
    """
    return next(_iterate_faults(text, sources), None)


def find_searcher(command: str) -> str | None:
    """Return the first program of a shell command that prints or searches files, or `git`; None where there is none."""
    for part in re.split(r"[|;&\n(`]+", command):
        words = part.split()
        while words and ("=" in words[0] or words[0] in ("sudo", "env", "command", "sh", "bash", "-c", "xargs")):
            words = words[1:]
        if words and (name := basename(words[0].strip("'\""))) in SEARCHERS | {"git"}:
            return name
    return None


def names_source(text: str, sources: Collection[str], *, by_base: bool = True) -> bool:
    """Return whether a string names any of the program's files, by the end of its path or its own name.

    `by_base`: whether a name without folder is enough.
    """
    text = text.strip().replace("\\", "/")
    while text.startswith(("./", "../")):
        text = text.partition("/")[2]
    words = re.findall(r"[\w./\-]+", text)
    for word in words:
        for path in sources:
            if "/" in word.strip("/") and (path.endswith(word.strip("/")) or word.endswith("/" + path) or word == path):
                return True
            if by_base and word.strip("/") == basename(path):
                return True
    return False


def _iterate_faults(text: str, sources: Collection[str]) -> Iterator[TestFault]:
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        for reason, detail in _iterate_line_faults(line, sources):
            yield TestFault(reason=reason, line=number, detail=detail)
    if any(names_source(string, sources, by_base=False) for string in _list_strings(text)) and _READS.search(text):
        yield TestFault(reason=TestFaultReason.READS_SOURCE, line=1, detail="names and reads a file of the program")
    if not any(map(_ASSERTS.search, lines)):
        yield TestFault(reason=TestFaultReason.NO_ASSERTION, line=1, detail="there is no assertion")
    if not _CALL.search(text):
        yield TestFault(reason=TestFaultReason.NO_CALL, line=1, detail="there is no call")


def _iterate_line_faults(line: str, sources: Collection[str]) -> Iterator[tuple[TestFaultReason, str]]:
    strings = [next(filter(None, match.groups()), "") for match in _STRING.finditer(line)]
    if any(names_source(string, sources) for string in strings):
        if _WRITES.search(line):
            yield TestFaultReason.CHANGES_SOURCE, "writes to a file of the program"
        if _READS.search(line):
            yield TestFaultReason.READS_SOURCE, "reads a file of the program"
    if any(_GIT.search(string) for string in strings):
        yield TestFaultReason.READS_GIT, "reads the git repository"
    if _STARTS.search(line) and (program := next(filter(None, map(find_searcher, strings)), None)):
        yield TestFaultReason.READS_GIT if program == "git" else TestFaultReason.SEARCHES_SOURCE, f"starts {program}"
    if _SKIPS.search(line):
        yield TestFaultReason.SKIPS, "a test is skipped, or may be"
    if _ENDS.search(line):
        yield TestFaultReason.ENDS_RUN, "ends the process"


def _list_strings(text: str) -> list[str]:
    """Return the strings of a text but those of imports, which name files of the program without reading them."""
    kept = [line for line in text.splitlines() if not re.search(r"\b(import|require|from|use|mod|#include)\b", line)]
    return [next(filter(None, match.groups()), "") for match in _STRING.finditer("\n".join(kept))]
