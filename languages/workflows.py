"""Continuous integration configuration, in the same form for all languages: jobs with their shell lines and values.

GitHub Actions (with composite actions of the same repository), GitLab, Travis, CircleCI and Azure Pipelines are read
from their YAML, with line numbers. Nothing is executed; each language interprets the shell lines itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from languages import yaml_nodes
from languages.facts import SourcedValue
from languages.source_tree import SourceTree
from languages.yaml_nodes import YamlNode

NOT_TESTS = re.compile(
    r"lint|docs?\b|doc[-_]?build|typ(e|ing)|bench|release|publish|deploy|nightly|upstream|downstream|codeql|cifuzz|stale|label"
    r"|audit|format|spell|size|welcome|triage|canary"
)
"""Matches lower-case names of jobs and workflows that do not run the tests of a change."""


@dataclass(frozen=True, kw_only=True)
class WorkflowValue:
    """A value of a key, with its 1-based line."""

    text: str
    line: int


@dataclass(frozen=True, kw_only=True)
class ShellLine:
    """A shell line, continuations joined, comments removed."""

    text: str
    line: int
    folder: str = ""
    """`working-directory` of the step, relative to the root; empty for the root."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job of a workflow, as far as it can be determined without running it."""

    path: str
    line: int
    name: str
    """Key of the job; the provider's name if its jobs have no names."""
    lines: tuple[ShellLine, ...] = ()
    """Shell lines in execution order."""
    values: Mapping[str, tuple[WorkflowValue, ...]] = field(default_factory=dict)
    """Lower-case key, such as `node-version` or `go` -> its distinct values in the matrix and in the steps' `with`, in
    order. `${{ matrix.x }}` and `${{ env.X }}` are replaced by the values they refer to."""
    env: tuple[tuple[str, str], ...] = ()
    """Environment variables of workflow, job and steps whose value is a literal."""
    services: tuple[SourcedValue, ...] = ()
    """Images or names of servers that the job starts, as written: `postgres:13`, `redis-server`."""
    uses: tuple[SourcedValue, ...] = ()
    """External actions (`actions/setup-node@v4`) and images in which the job runs (`node:18`)."""

    @property
    def is_auxiliary(self) -> bool:
        """Whether the job's name indicates that it runs no tests; a project may have no other job."""
        return any(NOT_TESTS.search(name) for name in (self.name.lower(), self.path.rpartition("/")[2].lower()))

    def list_system_packages(self) -> Iterator[SourcedValue]:
        """Yield the Debian packages that the shell lines install."""
        for line in self.lines:
            for name in parse_apt_packages(line.text):
                yield SourcedValue(text=name, path=self.path, line=line.line)


def read_jobs(tree: SourceTree) -> list[Job]:
    """Return all jobs, by provider (GitHub first), file and position."""
    return [
        job for reader in (_read_github, _read_gitlab, _read_travis, _read_circle, _read_azure) for job in reader(tree)
    ]


def parse_apt_packages(line: str) -> Iterator[str]:
    """Yield the package names that a shell line passes to `apt install`; names with variables are skipped."""
    for match in re.finditer(r"\bapt(?:-get|itude)?\b[^&|;]*?\binstall\b([^&|;]*)", line):
        for word in match[1].split():
            if re.fullmatch(r"[a-z0-9][a-z0-9.+-]+", word):
                yield word


# ------------------------------------------------------------------------------------------------ providers


def _read_github(tree: SourceTree) -> Iterator[Job]:
    for path in tree.glob(".github/workflows/*.y*ml"):
        document = yaml_nodes.load_yaml(tree.read(path))
        for name, job in document["jobs"].items():
            reader = _JobReader(tree=tree, path=path, name=name.text, line=name.line)
            reader.add_env(document["env"])
            reader.add_env(job["env"])
            reader.add_matrix(job["strategy"]["matrix"])
            reader.add_services(job["services"])
            reader.add_image(job["container"])
            folder = (
                job["defaults"]["run"]["working-directory"].text
                or document["defaults"]["run"]["working-directory"].text
            )
            reader.add_steps(job["steps"], folder)
            if job["uses"].text:
                reader.uses.append(SourcedValue(text=job["uses"].text, path=path, line=job["uses"].line))
                reader.add_values(job["with"])
            yield reader.build_job()


_GITLAB_WORDS = frozenset(
    {"stages", "variables", "default", "include", "workflow", "cache", "image", "services", "pages"}
)


def _read_gitlab(tree: SourceTree) -> Iterator[Job]:
    path = ".gitlab-ci.yml"
    document = yaml_nodes.load_yaml(tree.read(path))
    for name, job in document.items():
        if name.text in _GITLAB_WORDS or not job["script"]:
            continue
        reader = _JobReader(tree=tree, path=path, name=name.text, line=name.line)
        for part in (document, document["default"], job):
            reader.add_env(part["variables"])
            reader.add_services(part["services"])
            reader.add_image(part["image"])
        reader.add_matrix(job["parallel"]["matrix"])
        for script in (job["before_script"] or document["before_script"], job["script"]):
            reader.add_script(script, "")
        yield reader.build_job()


_TRAVIS_SCRIPTS = ("before_install", "install", "before_script", "script")


def _read_travis(tree: SourceTree) -> Iterator[Job]:
    path = ".travis.yml"
    document = yaml_nodes.load_yaml(tree.read(path))
    if not document:
        return
    reader = _JobReader(tree=tree, path=path, name="travis", line=1)
    # `matrix` is the older name of `jobs`.
    rows = [document, *document["matrix"]["include"].values(), *document["jobs"]["include"].values()]
    for row in rows:
        for key, value in row.items():
            if key.text not in (*_TRAVIS_SCRIPTS, "matrix", "jobs", "addons", "services", "env", "notifications"):
                reader.add_value(key.text, value)
        reader.add_services(row["services"])
        for phase in _TRAVIS_SCRIPTS:
            reader.add_script(row[phase], "")
        for package in row["addons"]["apt"]["packages"].values() or row["addons"]["apt_packages"].values():
            reader.lines.append(ShellLine(text=f"apt-get install {package.text}", line=package.line))
    yield reader.build_job()


def _read_circle(tree: SourceTree) -> Iterator[Job]:
    path = ".circleci/config.yml"
    document = yaml_nodes.load_yaml(tree.read(path))
    for name, job in document["jobs"].items():
        reader = _JobReader(tree=tree, path=path, name=name.text, line=name.line)
        images = [image["image"] for image in job["docker"].values()]
        # The job runs in the first image; the others are servers.
        for first in images[:1]:
            reader.add_image(first)
        reader.services += [SourcedValue(text=image.text, path=path, line=image.line) for image in images[1:]]
        reader.add_env(job["environment"])
        for step in job["steps"].values():
            run = step["run"]
            reader.add_script(run["command"] or run, run["working_directory"].text)
        yield reader.build_job()


def _read_azure(tree: SourceTree) -> Iterator[Job]:
    for path in tree.glob("*azure-pipelines*.y*ml"):
        document = yaml_nodes.load_yaml(tree.read(path))
        stages = [document, *document["stages"].values()]
        for job in [document, *(job for stage in stages for job in stage["jobs"].values())]:
            if not job["steps"]:
                continue
            reader = _JobReader(tree=tree, path=path, name=job["job"].text or "azure", line=job.line)
            reader.add_matrix(job["strategy"]["matrix"])
            for step in job["steps"].values():
                reader.add_values(step["inputs"])
                script = step["script"] or step["bash"]
                reader.add_script(script, step["workingDirectory"].text)
            yield reader.build_job()


# ------------------------------------------------------------------------------------------------ one job


class _JobReader:
    """Collects the parts of a job."""

    def __init__(self, *, tree: SourceTree, path: str, name: str, line: int) -> None:
        self.tree, self.path, self.name, self.line = tree, path, name, line
        self.lines: list[ShellLine] = []
        self.values: dict[str, list[WorkflowValue]] = {}
        self.env: dict[str, str] = {}
        self.services: list[SourcedValue] = []
        self.uses: list[SourcedValue] = []

    def build_job(self) -> Job:
        """Return the collected job."""
        return Job(
            path=self.path,
            line=self.line,
            name=self.name,
            lines=tuple(self.lines),
            values={key: tuple(dict.fromkeys(values)) for key, values in self.values.items()},
            env=tuple(self.env.items()),
            services=tuple(self.services),
            uses=tuple(self.uses),
        )

    def add_env(self, variables: YamlNode) -> None:
        """Add variables whose value is a literal."""
        for name, value in variables.items():
            if value.is_scalar and "$" not in value.text:
                self.env[name.text] = value.text

    def add_matrix(self, matrix: YamlNode) -> None:
        """Add all scalars below the node, each under the key nearest to it."""
        for key, value in matrix.items():
            # Rows of `exclude` are combinations that do not run.
            if key.text != "exclude":
                self.add_value(key.text, value)
        for row in matrix.values():
            self.add_matrix(row)

    def add_value(self, key: str, value: YamlNode) -> None:
        """Add the scalars of a key: a scalar, a list or a mapping."""
        if value.is_scalar:
            self.values.setdefault(key.lower(), []).extend(self._resolve_value(value))
            return
        for inner in value.values():
            if inner.is_scalar:
                self.add_value(key, inner)
            else:
                self.add_matrix(inner)
        for name, inner in value.items():
            self.add_value(name.text, inner)

    def add_values(self, mapping: YamlNode) -> None:
        """Add the keys of a step's `with`."""
        for key, value in mapping.items():
            self.add_value(key.text, value)

    def _resolve_value(self, value: YamlNode) -> list[WorkflowValue]:
        """Return the values that `${{ matrix.x }}` and `${{ env.X }}` refer to, else the text itself."""
        reference = re.fullmatch(r"\$\{\{\s*(matrix|env|inputs)\.([\w.-]+)\s*\}\}|\$\((\w+)\)", value.text.strip())
        if not reference:
            return [WorkflowValue(text=value.text, line=value.line)]
        name = (reference[2] or reference[3]).rpartition(".")[2]
        if reference[1] == "env":
            return [WorkflowValue(text=self.env[name], line=value.line)] if name in self.env else []
        return list(self.values.get(name.lower(), ()))

    def add_services(self, services: YamlNode) -> None:
        """Add servers: names, images, or a mapping whose entries have an image."""
        entries = [services] if services.is_scalar else services.values() or [image for _, image in services.items()]
        for entry in entries:
            text = entry["image"].text or entry["name"].text or entry.text
            if text:
                self.services.append(SourcedValue(text=text, path=self.path, line=entry.line))

    def add_image(self, container: YamlNode) -> None:
        """Add the image in which the job runs."""
        image = container["image"] or container["name"] or container
        if image.text:
            self.uses.append(SourcedValue(text=image.text, path=self.path, line=image.line))

    def add_steps(self, steps: YamlNode, folder: str, depth: int = 0) -> None:
        """Add the steps of a GitHub job; composite actions of the same repository are expanded."""
        for step in steps.values():
            self.add_env(step["env"])
            self.add_values(step["with"])
            self.add_script(step["run"], step["working-directory"].text or folder)
            action = step["uses"].text
            # Actions of a tree may refer to each other in a circle.
            if action.startswith("./") and depth < 3:
                self._add_action(action.removeprefix("./").rstrip("/"), folder, depth)
            elif action:
                self.uses.append(SourcedValue(text=action, path=self.path, line=step["uses"].line))

    def _add_action(self, folder_path: str, folder: str, depth: int) -> None:
        workflow_path = self.path
        self.path = next(
            (p for p in (f"{folder_path}/action.yml", f"{folder_path}/action.yaml") if self.tree.is_file(p)),
            workflow_path,
        )
        if self.path != workflow_path:
            action = yaml_nodes.load_yaml(self.tree.read(self.path))
            for name, settings in action["inputs"].items():
                if settings["default"].text and name.text.lower() not in self.values:
                    self.add_value(name.text, settings["default"])
            # Shell lines of the action are attributed to the workflow, which shows that the action belongs to the job.
            self.add_steps(action["runs"]["steps"], folder, depth + 1)
        self.path = workflow_path

    def add_script(self, script: YamlNode, folder: str) -> None:
        """Add a scalar of shell lines, or a list of them."""
        for part in [script] if script.is_scalar else script.values():
            folder = "" if "$" in folder else folder.removeprefix("./").strip("/.")
            self.lines += [ShellLine(text=text, line=line, folder=folder) for line, text in split_shell_lines(part)]


def split_shell_lines(script: YamlNode) -> Iterator[tuple[int, str]]:
    """Yield (1-based line in the file, text) of a script's lines, continuations joined, comments skipped."""
    start, pending = 0, ""
    for number, text in script.lines():
        start = start if pending else number
        if text.endswith("\\"):
            pending += text[:-1].rstrip() + " "
            continue
        joined, pending = pending + text, ""
        if joined.strip() and not joined.lstrip().startswith("#"):
            yield start, joined.strip()
    if pending.strip():
        yield start, pending.strip()
