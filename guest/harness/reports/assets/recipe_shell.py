#!/usr/bin/python3 -ISB
"""Shell of `make`: runs each line of a recipe, and records the lines that run programs of the tree as tests.

    recipe_shell.py --root=DIR --target=TARGET -c LINE     what make calls, with `.SHELLFLAGS`
    recipe_shell.py WORDS                                  what a recipe calls as $(SHELL): the real shell

A test is a line that runs a program or script of the tree; its result is the exit status of the line. A loop over
programs is one test for each of its words: the line runs once for each. A failed test does not end the recipe, so that
the other tests run, too. Rows are appended to `recipes.jsonl` in the folder of this file: tests, the programs that
lines make and from which words, and lines that failed to do so.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import time

SEPARATORS = frozenset("();&|")
KEYWORDS = frozenset(("then", "do", "else", "elif", "if", "while", "until", "!", "{", "time", "exec", "env", "nice"))
LAUNCHERS = re.compile(
    r"^(sh|bash|dash|ksh|perl|python[\d.]*|ruby|tclsh[\d.]*|lua[\d.]*|awk|gawk|valgrind|timeout|libtool)$"
)
NOT_TESTS = re.compile(
    r"^(configure|config\.(status|guess|sub)|autogen\.sh|bootstrap.*|install-sh|libtool|missing|depcomp)$"
)
COMPARERS = frozenset(("diff", "cmp"))
GENERATED = re.compile(
    r"\.(c|cc|cpp|cxx|h|hh|hpp|hxx|inc|ipp|[sSyld]|o|lo|a|so|mk|in|pc|txt|md|html|json|stamp)$|(^|/)Makefile$"
)
SOURCE = re.compile(r"\.(c|cc|cpp|cxx|c\+\+|o|lo)$", re.IGNORECASE)
LOOP = re.compile(r"\bfor\s+(\w+)\s+in\s+([^;\n]*?)\s*(?:;|\n)\s*do\b")
ASSIGNMENT = re.compile(r"^\w+=")
MAX_WORDS = 2000


def split_words(line):
    """Return the words of a shell line, with its operators as words of their own; empty if it cannot be parsed."""
    lexer = shlex.shlex(line.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        return []


def split_commands(line):
    """Yield the words of each simple command, without redirections, assignments and keywords."""
    command, skip = [], False
    for word in [*split_words(line), ";"]:
        if word and set(word) <= SEPARATORS:
            if command:
                yield command
            command, skip = [], False
        elif set(word) & set("<>") and set(word) <= set("<>&|"):
            skip = True
        elif skip:
            skip = False
        elif command or (word not in KEYWORDS and not ASSIGNMENT.match(word)):
            command.append(word)


def find_made_program(command):
    """Return the word after `-o`; empty if there is none."""
    places = [place for place, word in enumerate(command[:-1]) if word == "-o"]
    return command[places[0] + 1] if places else ""


class RecipeLine:
    """A line of the recipe of `target`, run in `folder` of the tree at `root`."""

    def __init__(self, line, target, folder, root):
        self.line = line
        self.target = target
        self.folder = folder
        self.root = root

    def make_relative(self, path, folder=""):
        """Return a path relative to the tree's root; empty if it is outside."""
        full = os.path.normpath(os.path.join(folder or self.folder, path))
        return os.path.relpath(full, self.root) if full.startswith(self.root + "/") else ""

    def find_programs(self, line):
        """Return the programs and scripts of the tree that a line runs, as paths from its root, in order."""
        folder, programs, made = self.folder, [], set()
        for command in split_commands(line):
            if command[0] == "cd" and len(command) > 1:
                folder = os.path.join(folder, command[1])
                continue
            made.add(self.make_relative(find_made_program(command), folder))
            launched = LAUNCHERS.match(os.path.basename(command[0]))
            for word in command[1:] if launched else command[:1]:
                path = self.make_relative(word, folder) if launched or "/" in word else ""
                full = os.path.join(self.root, path)
                is_program = path in made or (os.path.isfile(full) and (launched or os.access(full, os.X_OK)))
                if path and is_program and not NOT_TESTS.match(os.path.basename(path)):
                    programs.append(path)
                    break
        return programs

    def list_tests(self):
        """Return (name, line, programs) of each test of the line."""
        if GENERATED.search(self.target):
            return []
        loop = LOOP.search(self.line)
        tests = list(self._list_loop_tests(loop)) if loop else []
        programs = [] if tests else self.find_programs(self.line)
        if programs or (not tests and any(command[0] in COMPARERS for command in split_commands(self.line))):
            tests = [(" ".join(self.line.replace("\\\n", " ").split())[:300], self.line, programs)]
        return tests

    def _list_loop_tests(self, loop):
        words = expand_words(loop[2])
        for word in words if len(words) <= MAX_WORDS else ():
            one = self.line[: loop.start(2)] + shlex.quote(word) + self.line[loop.end(2) :]
            body = re.sub(r"\$(%s\b|\{%s\})" % (loop[1], loop[1]), lambda _, word=word: word, self.line[loop.end() :])
            programs = self.find_programs(body)
            if programs:
                yield word, one, programs

    def list_made(self):
        """Return (program, words) of each program that the line makes."""
        made = []
        for command in split_commands(self.line):
            program = self.make_relative(find_made_program(command))
            sources = [self.make_relative(word) for word in command[1:] if SOURCE.search(word)]
            sources = [source for source in sources if source and source != program]
            if sources:
                made.append((program or os.path.splitext(os.path.basename(sources[0]))[0] + ".o", sources))
        return made


def expand_words(words):
    """Return the words as the shell expands them."""
    command = [find_shell(), "-c", 'printf "%s\\0" ' + words]
    output = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False).stdout
    return [word for word in output.decode("utf-8", "replace").split("\0") if word]


def find_shell():
    """Return the shell that the project's makefile sets, as far as it is bash; else the default one."""
    for name in ("GNUmakefile", "makefile", "Makefile"):
        if os.path.isfile(name):
            with open(name, encoding="utf-8", errors="replace") as file:
                is_bash = re.search(r"^\s*(?:export\s+)?SHELL\s*[:?]?:?=.*\bbash\b", file.read(), re.MULTILINE)
            return "/bin/bash" if is_bash else "/bin/sh"
    return "/bin/sh"


def append_row(**row):
    """Append a row to the record."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "recipes.jsonl"), "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def run_tests(recipe, tests):
    """Run the tests of a line and record their results."""
    for name, line, programs in tests:
        start = time.monotonic()
        code = subprocess.call([find_shell(), "-c", line])
        append_row(
            test=name,
            programs=programs,
            code=code,
            seconds=round(time.monotonic() - start, 3),
            folder=os.path.relpath(recipe.folder, recipe.root),
        )


def main(words):
    """Run one line as make's shell; return the exit status for make."""
    settings = dict(word[2:].split("=", 1) for word in words if word.startswith(("--root=", "--target=")))
    rest = [word for word in words if not word.startswith(("--root=", "--target="))]
    if not settings.get("target") or rest[:1] != ["-c"]:  # $(shell ...), or $(SHELL) in a recipe
        return subprocess.call([find_shell(), *rest])
    recipe = RecipeLine(rest[1], settings["target"], os.getcwd(), os.path.realpath(settings["root"]))
    tests = recipe.list_tests()
    made = recipe.list_made()
    for program, sources in made:
        append_row(made=program, sources=sources)
    if tests:
        run_tests(recipe, tests)
        return 0
    code = subprocess.call([find_shell(), "-c", recipe.line])
    for _, sources in made if code else ():
        append_row(failed=sources, code=code)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
