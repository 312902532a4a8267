"""Combine submissions that must earn 0: several probes in one, which earns something where any of them alone would.

Probes of one group have the same effect in a grader that does not prevent it (`languages.probes`), so that none hides
another, whatever number of them takes effect. ADR 0031 has the argument, and `tests/verifiers/test_combined_probes.py`
measures it with graders that are weak in every combination of ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from languages.paths import is_protected
from languages.probes import Changes, Probe, ProbeTarget


@dataclass(frozen=True, kw_only=True)
class ProbeSubmission:
    """The changes of one probe or of several.

    Attributes:
        name: name of its probe, or of the group of its probes.
        members: probes that it is made of.
        changes: their changes; no path is changed by two of them.
    """

    name: str
    members: tuple[Probe, ...]
    changes: Changes


def combine_probes(target: ProbeTarget, probes: Sequence[Probe]) -> list[ProbeSubmission]:
    """Return the submissions of all probes that can be made from a target.

    A probe stays alone that has no group, that changes a path of another one of its group, or that replaces a file
    which is no test: where no grader restores that, other tests may fail for it.
    """
    submissions: dict[str, ProbeSubmission] = {}
    for probe in probes:
        changes = probe.make(target)
        if not changes:
            continue
        alone = ProbeSubmission(name=probe.name, members=(probe,), changes=changes)
        combined = submissions.get(probe.group)
        if not probe.group or not _keeps_program(changes, target):
            submissions[probe.name] = alone
        elif combined is None:
            submissions[probe.group] = alone
        elif combined.changes.keys().isdisjoint(changes):
            submissions[probe.group] = ProbeSubmission(
                name=probe.group, members=(*combined.members, probe), changes={**combined.changes, **changes}
            )
        else:
            submissions[probe.name] = alone
    return list(submissions.values())


def split_submission(submission: ProbeSubmission, target: ProbeTarget) -> list[ProbeSubmission]:
    """Return a submission for each probe of a combined one."""
    return [
        ProbeSubmission(name=probe.name, members=(probe,), changes=probe.make(target)) for probe in submission.members
    ]


def _keeps_program(changes: Changes, target: ProbeTarget) -> bool:
    """Return whether changes only add to files of the program, whatever they do to tests."""
    return all(
        is_protected(path) or (content is not None and content.startswith(target.base.get(path, b"")))
        for path, content in changes.items()
    )
