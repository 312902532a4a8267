"""What a project's continuous integration says, the same for every language: jobs with their shell lines and values.

GitHub Actions (with composite actions of the same repository), GitLab, Travis, CircleCI and Azure Pipelines are read
from their YAML, with the line of everything. Nothing is executed; what a line means its language knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from languages import marked
from languages.facts import Wanted
from languages.marked import Marked
from languages.tree import Tree

NOT_TESTS = re.compile(
    r"lint|docs?\b|doc[-_]?build|typ(e|ing)|bench|release|publish|deploy|nightly|upstream|downstream|codeql|cifuzz|stale|label"
    r"|audit|format|spell|size|welcome|triage|canary"
)
"""Names (in small letters) of jobs and workflows beside the tests that gate a change."""


@dataclass(frozen=True, kw_only=True)
class Value:
    """A value that a key has, and its 1-based line."""

    text: str
    line: int


@dataclass(frozen=True, kw_only=True)
class Line:
    """A shell line, continuations joined, comments left out."""

    text: str
    line: int
    folder: str = ""
    """`working-directory` of its step, from the root; empty for the root."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One job of a workflow, as far as it can be told without running it."""

    path: str
    line: int
    name: str
    """The job's key; for providers without names the provider's."""
    lines: tuple[Line, ...] = ()
    """What it runs, in its order."""
    values: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    """Key in small letters, such as `node-version` or `go` -> its values in the matrix and in the steps' `with`, each
    once, in their order. A value that is just `${{ matrix.x }}` or `${{ env.X }}` stands for those."""
    env: tuple[tuple[str, str], ...] = ()
    """Variables of workflow, job and steps whose value is plain."""
    services: tuple[Wanted, ...] = ()
    """Images or names of servers it starts, as written: `postgres:13`, `redis-server`."""
    uses: tuple[Wanted, ...] = ()
    """Actions of others (`actions/setup-node@v4`) and images it runs in (`node:18`)."""

    @property
    def is_beside(self) -> bool:
        """Whether names say that it is not about tests; a job may be the only one that runs them all the same."""
        return any(NOT_TESTS.search(name) for name in (self.name.lower(), self.path.rpartition("/")[2].lower()))

    def system_packages(self) -> Iterator[Wanted]:
        """Debian packages that its lines install."""
        for line in self.lines:
            for name in apt_packages(line.text):
                yield Wanted(text=name, path=self.path, line=line.line)


def jobs(tree: Tree) -> list[Job]:
    """All jobs, provider by provider, GitHub's first, in the order of files and of the text."""
    return [job for reader in (_github, _gitlab, _travis, _circle, _azure) for job in reader(tree)]


def apt_packages(line: str) -> Iterator[str]:
    """Names that a shell line gives to `apt install`; nothing that holds a variable."""
    for match in re.finditer(r"\bapt(?:-get|itude)?\b[^&|;]*?\binstall\b([^&|;]*)", line):
        for word in match[1].split():
            if re.fullmatch(r"[a-z0-9][a-z0-9.+-]+", word):
                yield word


# ------------------------------------------------------------------------------------------------ providers


def _github(tree: Tree) -> Iterator[Job]:
    for path in tree.glob(".github/workflows/*.y*ml"):
        document = marked.load(tree.read(path))
        for name, job in document["jobs"].items():
            inside = _Reading(tree=tree, path=path, name=name.text, line=name.line)
            inside.take_env(document["env"])
            inside.take_env(job["env"])
            inside.take_matrix(job["strategy"]["matrix"])
            inside.take_services(job["services"])
            inside.take_image(job["container"])
            folder = (
                job["defaults"]["run"]["working-directory"].text
                or document["defaults"]["run"]["working-directory"].text
            )
            inside.take_steps(job["steps"], folder)
            if job["uses"].text:
                inside.uses.append(Wanted(text=job["uses"].text, path=path, line=job["uses"].line))
                inside.take_values(job["with"])
            yield inside.job()


_GITLAB_WORDS = frozenset(
    {"stages", "variables", "default", "include", "workflow", "cache", "image", "services", "pages"}
)


def _gitlab(tree: Tree) -> Iterator[Job]:
    path = ".gitlab-ci.yml"
    document = marked.load(tree.read(path))
    for name, job in document.items():
        if name.text in _GITLAB_WORDS or not job["script"]:
            continue
        inside = _Reading(tree=tree, path=path, name=name.text, line=name.line)
        for part in (document, document["default"], job):
            inside.take_env(part["variables"])
            inside.take_services(part["services"])
            inside.take_image(part["image"])
        inside.take_matrix(job["parallel"]["matrix"])
        for script in (job["before_script"] or document["before_script"], job["script"]):
            inside.take_script(script, "")
        yield inside.job()


_TRAVIS_SCRIPTS = ("before_install", "install", "before_script", "script")


def _travis(tree: Tree) -> Iterator[Job]:
    path = ".travis.yml"
    document = marked.load(tree.read(path))
    if not document:
        return
    inside = _Reading(tree=tree, path=path, name="travis", line=1)
    rows = [document, *document["matrix"]["include"].values(), *document["jobs"]["include"].values()]
    for row in rows:
        for key, value in row.items():
            if key.text not in (*_TRAVIS_SCRIPTS, "matrix", "jobs", "addons", "services", "env", "notifications"):
                inside.take_value(key.text, value)
        inside.take_services(row["services"])
        for phase in _TRAVIS_SCRIPTS:
            inside.take_script(row[phase], "")
        for package in row["addons"]["apt"]["packages"].values() or row["addons"]["apt_packages"].values():
            inside.lines.append(Line(text=f"apt-get install {package.text}", line=package.line))
    yield inside.job()


def _circle(tree: Tree) -> Iterator[Job]:
    path = ".circleci/config.yml"
    document = marked.load(tree.read(path))
    for name, job in document["jobs"].items():
        inside = _Reading(tree=tree, path=path, name=name.text, line=name.line)
        images = [image["image"] for image in job["docker"].values()]
        for first in images[:1]:
            inside.take_image(first)
        inside.services += [Wanted(text=image.text, path=path, line=image.line) for image in images[1:]]
        inside.take_env(job["environment"])
        for step in job["steps"].values():
            run = step["run"]
            inside.take_script(run["command"] or run, run["working_directory"].text)
        yield inside.job()


def _azure(tree: Tree) -> Iterator[Job]:
    for path in tree.glob("*azure-pipelines*.y*ml"):
        document = marked.load(tree.read(path))
        stages = [document, *document["stages"].values()]
        for job in [document, *(job for stage in stages for job in stage["jobs"].values())]:
            if not job["steps"]:
                continue
            inside = _Reading(tree=tree, path=path, name=job["job"].text or "azure", line=job.line)
            inside.take_matrix(job["strategy"]["matrix"])
            for step in job["steps"].values():
                inside.take_values(step["inputs"])
                script = step["script"] or step["bash"]
                inside.take_script(script, step["workingDirectory"].text)
            yield inside.job()


# ------------------------------------------------------------------------------------------------ one job


class _Reading:
    """A job while it is read."""

    def __init__(self, *, tree: Tree, path: str, name: str, line: int) -> None:
        self.tree, self.path, self.name, self.line = tree, path, name, line
        self.lines: list[Line] = []
        self.values: dict[str, list[Value]] = {}
        self.env: dict[str, str] = {}
        self.services: list[Wanted] = []
        self.uses: list[Wanted] = []

    def job(self) -> Job:
        """What was read."""
        return Job(
            path=self.path, line=self.line, name=self.name, lines=tuple(self.lines),
            values={key: tuple(dict.fromkeys(values)) for key, values in self.values.items()},
            env=tuple(self.env.items()), services=tuple(self.services), uses=tuple(self.uses),
        )  # fmt: skip

    def take_env(self, variables: Marked) -> None:
        """Variables whose value is plain text."""
        for name, value in variables.items():
            if value.is_scalar and "$" not in value.text:
                self.env[name.text] = value.text

    def take_matrix(self, matrix: Marked) -> None:
        """All scalars below, each under the key nearest to it."""
        for key, value in matrix.items():
            if key.text != "exclude":
                self.take_value(key.text, value)
        for row in matrix.values():
            self.take_matrix(row)

    def take_value(self, key: str, value: Marked) -> None:
        """One key with a scalar, or a list or mapping of them."""
        if value.is_scalar:
            self.values.setdefault(key.lower(), []).extend(self._meant(value))
            return
        for inner in value.values():
            if inner.is_scalar:
                self.take_value(key, inner)
            else:
                self.take_matrix(inner)
        for name, inner in value.items():
            self.take_value(name.text, inner)

    def take_values(self, mapping: Marked) -> None:
        """The keys of a step's `with`."""
        for key, value in mapping.items():
            self.take_value(key.text, value)

    def _meant(self, value: Marked) -> list[Value]:
        """The values of `${{ matrix.x }}` and `${{ env.X }}`, else the text itself."""
        reference = re.fullmatch(r"\$\{\{\s*(matrix|env|inputs)\.([\w.-]+)\s*\}\}|\$\((\w+)\)", value.text.strip())
        if not reference:
            return [Value(text=value.text, line=value.line)]
        name = (reference[2] or reference[3]).rpartition(".")[2]
        if reference[1] == "env":
            return [Value(text=self.env[name], line=value.line)] if name in self.env else []
        return list(self.values.get(name.lower(), ()))

    def take_services(self, services: Marked) -> None:
        """Servers: names, images, or a mapping whose entries have an image."""
        listed = [services] if services.is_scalar else services.values() or [image for _, image in services.items()]
        for one in listed:
            text = one["image"].text or one["name"].text or one.text
            if text:
                self.services.append(Wanted(text=text, path=self.path, line=one.line))

    def take_image(self, container: Marked) -> None:
        """The image a job runs in."""
        image = container["image"] or container["name"] or container
        if image.text:
            self.uses.append(Wanted(text=image.text, path=self.path, line=image.line))

    def take_steps(self, steps: Marked, folder: str, depth: int = 0) -> None:
        """GitHub's steps; those of a composite action of the same repository are taken in."""
        for step in steps.values():
            self.take_env(step["env"])
            self.take_values(step["with"])
            self.take_script(step["run"], step["working-directory"].text or folder)
            action = step["uses"].text
            if action.startswith("./") and depth < 3:
                self._take_action(action.removeprefix("./").rstrip("/"), folder, depth)
            elif action:
                self.uses.append(Wanted(text=action, path=self.path, line=step["uses"].line))

    def _take_action(self, place: str, folder: str, depth: int) -> None:
        own = self.path
        self.path = next((p for p in (f"{place}/action.yml", f"{place}/action.yaml") if self.tree.is_file(p)), own)
        if self.path != own:
            action = marked.load(self.tree.read(self.path))
            for name, given in action["inputs"].items():
                if given["default"].text and name.text.lower() not in self.values:
                    self.take_value(name.text, given["default"])
            # The lines are told of the workflow: there one sees that the action belongs to the job.
            self.take_steps(action["runs"]["steps"], folder, depth + 1)
        self.path = own

    def take_script(self, script: Marked, folder: str) -> None:
        """A scalar of shell lines, or a list of them."""
        for one in [script] if script.is_scalar else script.values():
            folder = "" if "$" in folder else folder.removeprefix("./").strip("/.")
            self.lines += [Line(text=text, line=line, folder=folder) for line, text in shell_lines(one)]


def shell_lines(script: Marked) -> Iterator[tuple[int, str]]:
    """(1-based line in the file, text) of a script's lines: continuations joined, blank lines and comments left out."""
    start, held = 0, ""
    for number, text in script.lines():
        start = start if held else number
        if text.endswith("\\"):
            held += text[:-1].rstrip() + " "
            continue
        whole, held = held + text, ""
        if whole.strip() and not whole.lstrip().startswith("#"):
            yield start, whole.strip()
    if held.strip():
        yield start, held.strip()
