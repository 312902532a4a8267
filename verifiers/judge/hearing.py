"""What language models add to what the rules saw: opinions, the probabilities with them, a completed statement.

No model can make a case better than the rules found it but by an addition that the rules accept, and none can set a
case aside: what it says moves the probabilities, and is stored with its quotes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from taskdb.verdicts import Completion, Finding, completed
from verifiers.judge.asking import Asking
from verifiers.judge.assess import Assessment, set_aside
from verifiers.judge.case import Case, Mentions
from verifiers.judge.completion import complete
from verifiers.judge.opinions import Panel, ask_panel
from verifiers.judge.rules import findings_of

MENDABLE = frozenset({"message-not-stated", "name-not-stated"})
"""Findings that an addition is to make go away. Values are not among them, because what a test expects of a value may
follow from the statement: they are added only where models miss them. A statement that says nothing stays what it is:
there is nothing to add to."""
OPINIONS = 0.5
"""What opinions weigh beside the rules' probability. Nobody's labels were asked: no model is assumed anywhere."""


@dataclass(frozen=True, kw_only=True)
class Heard:
    """A case after models were asked.

    Probabilities are 0..1 and of the statement as it was; `set_aside` is of the statement with its addition.
    """

    underspecified: float
    unfair_tests: float
    set_aside: str | None
    panel: Panel
    completion: Completion | None

    @property
    def addition(self) -> str:
        """What is told after the original statement; empty when there is nothing."""
        return self.completion.addition if self.completion else ""


def hear(case: Case, found: Assessment, asking: Asking) -> Heard:
    """Ask for opinions, and for an addition where rules or opinions miss something.

    Raises:
        Transient, InputError, Stopped: see `ask_panel`.
    """
    case = replace(case, mentions=_remembered(case.mentions))
    panel = ask_panel(case, asking)
    completion = complete(case, asking, lambda statement: mendable(case, statement), panel.missing)
    aside = found.set_aside
    if completion and completion.addition:
        whole = replace(case, statement=completed(case.statement, completion.addition))
        aside = set_aside(findings_of(whole))
    return Heard(
        underspecified=weighed(found.underspecified, panel.underspecified),
        unfair_tests=weighed(found.unfair_tests, panel.unfair_tests),
        set_aside=aside, panel=panel, completion=completion,
    )  # fmt: skip


def mendable(case: Case, statement: str) -> list[Finding]:
    """What an addition to this statement of the case would still have to tell."""
    return [one for one in findings_of(replace(case, statement=statement)) if one.rule in MENDABLE]


def weighed(rules: float, opinions: float | None) -> float:
    """The rules' probability with the mean of opinions; the former alone where no opinion counts."""
    return rules if opinions is None else (1 - OPINIONS) * rules + OPINIONS * opinions


def _remembered(mentions: Mentions) -> Mentions:
    """The same, each text looked for once: the rules are asked of every addition, and a tree may be large."""
    known: dict[str, bool] = {}

    def asked(texts: Collection[str]) -> set[str]:
        new = [text for text in texts if text not in known]
        there = mentions(new) if new else set()
        known.update({text: text in there for text in new})
        return {text for text in texts if known[text]}

    return asked
