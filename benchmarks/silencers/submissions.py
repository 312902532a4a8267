"""Submissions that solve nothing and switch assertions off, in five languages.

A silencer is code of a language in the files that a gold patch changes, with some forms: what it switches off, each
alone and all together. The rest of the submission is one of three: the functions that the gold patch changes do what
they do in the base tree, return their argument, or return what functions of their type return most often. The canaries'
files are spared, since their failure alone would expose a submission.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from backends.services import Services
from benchmarks.silencers import go, java, node, python, rust
from benchmarks.silencers.parts import SilencedTarget, list_changed_lines
from languages.probes import Changes
from taskdb.records import Task
from verifiers.base_tree import read_base_files
from verifiers.inspection import read_target

MANIFESTS = re.compile(rf"(^|/)({go.MODULE}|{rust.MANIFEST}|{rust.BUILD_SCRIPT})$")
"""Files of the base tree that silencers are made of, besides those that the gold patch changes."""
ALL = "all together"
"""Name of the form that is all forms of its language."""


class Rest(StrEnum):
    """What the functions do that the gold patch changes."""

    NOTHING = "nothing"
    """What they do in the base tree; in Python, names and arguments that are missing there do nothing."""
    ARGUMENT = "argument"
    """Return their argument."""
    TYPICAL = "typical"
    """Return what functions of their type return most often."""


Write = Callable[[SilencedTarget, Sequence[str], str], Changes]
"""Returns the changes of a submission: target, forms, rest. Empty where it cannot be made from the target."""


@dataclass(frozen=True, kw_only=True)
class SilencedLanguage:
    """The silencers of a language.

    Attributes:
        names: names of languages whose tasks they are made for.
        forms: form -> what it switches off.
        write: function that makes a submission.
        alone: forms that cannot be together with others.
    """

    names: Sequence[str]
    forms: Mapping[str, str]
    write: Write
    alone: frozenset[str] = frozenset()


SILENCED: tuple[SilencedLanguage, ...] = (
    SilencedLanguage(names=("python",), forms=python.FORMS, write=python.write, alone=python.ALONE),
    SilencedLanguage(names=("javascript", "typescript"), forms=node.FORMS, write=node.write),
    SilencedLanguage(names=("go",), forms=go.FORMS, write=go.write),
    SilencedLanguage(names=("rust",), forms=rust.FORMS, write=rust.write),
    SilencedLanguage(names=("java",), forms=java.FORMS, write=java.write),
)


@dataclass(frozen=True, kw_only=True)
class Silencer:
    """A silencer of a language. `form`: one of its forms, or ALL."""

    language: SilencedLanguage
    form: str
    rest: Rest

    @property
    def name(self) -> str:
        """Name in tables, such as `python: methods, argument`."""
        return f"{self.language.names[0]}: {self.form}, {self.rest}"

    @property
    def forms(self) -> list[str]:
        """The forms of the submission."""
        together = [form for form in self.language.forms if form not in self.language.alone]
        return together if self.form == ALL else [self.form]

    def make(self, target: SilencedTarget) -> Changes:
        """Return the changes of the submission to a task; empty where it cannot be made."""
        return self.language.write(target, self.forms, self.rest)


def list_silencers(language: str) -> list[Silencer]:
    """Return the silencers of a language's tasks; none of a language without."""
    return [
        Silencer(language=silenced, form=form, rest=rest)
        for silenced in SILENCED
        if language in silenced.names
        for form in (*silenced.forms, ALL)
        for rest in Rest
    ]


def read_silenced_target(task: Task, services: Services) -> SilencedTarget:
    """Return what the silencers of a task are made of.

    Raises:
        InputError: the clone of the task's source or an artifact does not exist.
    """
    files = list(read_base_files(task, services))
    target, _ = read_target(task, services, files)
    manifests = {path: content for path, content in files if MANIFESTS.search(path)}
    return SilencedTarget(
        base={**manifests, **target.base},
        sources=target.program_files,
        test_files=target.test_files,
        lines=list_changed_lines(services.artifacts.get_text(task.gold_patch)),
    )
