"""Submissions that solve nothing and switch assertions off, in five languages.

A silencer is code of a language in the files that a gold patch changes, with some forms: what it switches off, each
alone and all together. The rest of the submission is one of three: the functions of these files do what they do in the
base tree, return their argument, or return what functions of their type return most often. The canaries' files are
spared, since their failure alone would expose a submission.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.silencers import go, java, node, python, rust
from backends.services import Services
from languages.probes import Changes, ProbeTarget
from taskdb.records import Task
from verifiers.base_tree import read_base_files
from verifiers.inspection import read_target
from verifiers.probes import create_target

MANIFESTS = re.compile(rf"(^|/)({go.MODULE}|{rust.MANIFEST}|{rust.BUILD_SCRIPT})$")
"""Files of the base tree that silencers are made of, besides those that the gold patch changes."""
ALL = "all together"
"""Name of the form that is all forms of its language."""


class Rest(StrEnum):
    """What the functions of a silencer's files do."""

    NOTHING = "nothing"
    """What they do in the base tree; where that raises or is missing, nothing."""
    ARGUMENT = "argument"
    """Return their argument."""
    TYPICAL = "typical"
    """Return what functions of their type return most often."""


Write = Callable[[ProbeTarget, Sequence[str], str], Changes]
"""Returns the changes of a submission: target, forms, rest. Empty where it cannot be made from the target."""


@dataclass(frozen=True, kw_only=True)
class SilencedLanguage:
    """The silencers of a language.

    Attributes:
        names: names of languages whose tasks they are made for.
        forms: form -> what it switches off.
        write: function that makes a submission.
    """

    names: Sequence[str]
    forms: Mapping[str, str]
    write: Write


SILENCED: tuple[SilencedLanguage, ...] = (
    SilencedLanguage(names=("python",), forms=python.FORMS, write=python.write),
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
        return list(self.language.forms) if self.form == ALL else [self.form]

    def make(self, target: ProbeTarget) -> Changes:
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


def read_silenced_target(task: Task, services: Services) -> ProbeTarget:
    """Return what the silencers of a task are made of.

    Raises:
        InputError: the clone of the task's source or an artifact does not exist.
    """
    files = list(read_base_files(task, services))
    target, _ = read_target(task, services, files)
    manifests = {path: content for path, content in files if MANIFESTS.search(path)}
    return create_target(task, target.gold_files, {**manifests, **target.base})
