"""Time zone, language and terminal of the tests, as the project's CI, tox and nox set them.

Tests that depend on them pass where the project runs them. A variable that is set for them is part of the plan;
everything else of the environment of CI is left out.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from languages.draft import PlanDraft
from languages.facts import SourcedValue
from languages.source_tree import SourceTree
from languages.workflows import Job, read_jobs
from taskdb.records import Evidence

_NAMES = r"TZ|LANG|LANGUAGE|LC_[A-Z]+|COLUMNS|LINES|TERM"
_VARIABLE = re.compile(_NAMES)
_VALUE = re.compile(r"[\w./+:@-]+")
_ASSIGNMENT = re.compile(rf"(?:^|(?<=\s))(?:export\s+)?(?P<name>{_NAMES})=[\"']?(?P<value>[\w./+:@-]+)")
_ZONE_COMMAND = re.compile(r"timedatectl\s+set-timezone\s+([\w/+-]+)|zoneinfo/([\w/+-]+)\s+/etc/localtime")
_LOCALE_COMMAND = re.compile(r"\blocale-gen\b(?P<names>[^;&|]*)")
_NOX = re.compile(rf"session\.env\[[\"'](?P<name>{_NAMES})[\"']\]\s*=\s*[\"'](?P<value>[^\"']+)")
_RUNS_TESTS = re.compile(r"\b(tests?|pytest|tox|nox|rspec|jest|mocha|vitest|check|verify|phpunit|prove)\b|:test\b")
_TOX = re.compile(r"\btox\b")
_PASSED_BY_TOX = frozenset({"LANG", "LANGUAGE", "TERM"})
LOCALE = re.compile(r"(?P<name>[a-z]{2,3}_[A-Z]{2})(?:\.(?P<charset>UTF-?8|utf-?8|ISO-?8859-\d+))?")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A variable of the tests; `name` is empty for a locale that is only generated."""

    name: str
    value: str
    path: str
    line: int


def add_surroundings(draft: PlanDraft, tree: SourceTree) -> PlanDraft:
    """Return the draft with the variables that the project sets for its tests, and with the locales they name."""
    settings = {setting.name or setting.value: setting for setting in reversed(list(read_settings(tree)))}
    for setting in settings.values():
        if setting.name and (setting.name, setting.value) not in draft.env:
            kept = tuple(pair for pair in draft.env if pair[0] != setting.name)
            line = Evidence(choice="env", value=f"{setting.name}={setting.value}", path=setting.path, line=setting.line)
            draft = replace(draft, env=(*kept, (setting.name, setting.value)), evidence=(*draft.evidence, line))
    return _add_locales(
        draft, [setting for setting in settings.values() if not setting.name or setting.name.startswith("L")]
    )


def read_settings(tree: SourceTree) -> Iterator[Setting]:
    """Yield the variables that tox, nox and the first CI job with tests set, most trusted first."""
    yield from _read_tox(tree)
    text = tree.read("noxfile.py")
    for match in _NOX.finditer(text):
        yield Setting(
            name=match["name"], value=match["value"], path="noxfile.py", line=_count_line(text, match.start())
        )
    jobs = [job for job in read_jobs(tree) if not job.is_auxiliary]
    job = next((job for job in jobs if any(_RUNS_TESTS.search(line.text) for line in job.lines)), None)
    yield from _read_job(job, tree) if job else ()


def render_locale_step(locales: Iterable[str]) -> str:
    """Return the command that generates locales such as `de_DE.UTF-8`; those that Debian does not have are left out."""
    return "; ".join(
        f"if [ -f /usr/share/i18n/locales/{match['name']} ]; then "
        f"localedef -i {match['name']} -f {_format_charset(match['charset'])} {text}; fi"
        for text in sorted(set(locales))
        if (match := LOCALE.fullmatch(text))
    )


def _format_charset(text: str | None) -> str:
    """Return the name of a character set as localedef spells it; a locale without a character set is in Latin-1."""
    if text is None:
        return "ISO-8859-1"
    return "UTF-8" if text.upper().startswith("UTF") else re.sub(r"ISO-?", "ISO-", text)


def _add_locales(draft: PlanDraft, settings: Iterable[Setting]) -> PlanDraft:
    named = [setting for setting in settings if LOCALE.fullmatch(setting.value)]
    if not named:
        return draft
    package = SourcedValue(text="locales", path=named[0].path, line=named[0].line)
    others = tuple(system_package for system_package in draft.system_packages if system_package.text != package.text)
    return replace(
        draft,
        system_packages=tuple(sorted((*others, package), key=lambda entry: entry.text)),
        dependency_steps=(*draft.dependency_steps, render_locale_step(setting.value for setting in named)),
    )


def _read_tox(tree: SourceTree) -> Iterator[Setting]:
    text = tree.read("tox.ini")
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    for key in ("setenv", "set_env"):
        for line in (parser.get("testenv", key, fallback=None) or "").splitlines():
            name, _, value = (part.strip() for part in line.partition("="))
            if _VARIABLE.fullmatch(name) and _VALUE.fullmatch(value):
                yield Setting(name=name, value=value, path="tox.ini", line=_count_line(text, text.find(line)))


def _read_job(job: Job, tree: SourceTree) -> Iterator[Setting]:
    script = "\n".join(line.text for line in job.lines)
    passed = tree.read("tox.ini") if _TOX.search(script) and "pytest" not in script else None
    text = tree.read(job.path)
    for name, value in job.env:
        is_passed = passed is None or name in _PASSED_BY_TOX or re.search(rf"\b{name}\b", passed)
        if _VARIABLE.fullmatch(name) and _VALUE.fullmatch(value) and is_passed:
            match = re.search(rf"\b{name}\b", text)
            yield Setting(name=name, value=value, path=job.path, line=_count_line(text, match.start()) if match else 0)
    for line in job.lines:
        for match in _ASSIGNMENT.finditer(line.text):
            yield Setting(name=match["name"], value=match["value"], path=job.path, line=line.line)
        for match in _ZONE_COMMAND.finditer(line.text):
            yield Setting(name="TZ", value=match[1] or match[2], path=job.path, line=line.line)
        for match in _LOCALE_COMMAND.finditer(line.text):
            for word in match["names"].split():
                if LOCALE.fullmatch(word):
                    yield Setting(name="", value=word, path=job.path, line=line.line)


def _count_line(text: str, at: int) -> int:
    return text.count("\n", 0, max(at, 0)) + 1
