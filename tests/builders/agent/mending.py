"""Small projects whose builds fail, and models that are to mend them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from backends.git import Repository
from backends.llm.client import ChatModel
from backends.services import Services
from backends.tree import Tree
from builders.agent.policy import LlmPolicy
from builders.agent.transcript import Transcript
from builders.build import first_draft
from builders.repair.policy import Case, GiveUp, History, Observation, Proposal
from builders.repair.skills import OURS, load, matching
from mergemill.config import Settings
from tests import records
from tests.boxes import make_services
from tests.helpers import TinyRepo
from tests.sample import PYPROJECT

TEST = 'from greet import greet\n\n\ndef test_it_says_hello():\n    assert greet("Ada") == "Hello Ada"\n'
GENERATED: Mapping[str, str] = {
    "pyproject.toml": PYPROJECT, "tests/test_greet.py": TEST, ".gitignore": "greet/words.txt\n",
    "greet/__init__.py": (
        "from pathlib import Path\n\nWORDS = (Path(__file__).parent / 'words.txt').read_text().split()\n\n\n"
        "def greet(name):\n    return f'{WORDS[0]} {name}'\n"
    ),
    "tools/make_words.py": "from pathlib import Path\n\nPath('greet/words.txt').write_text('Hello Goodbye\\n')\n",
}  # fmt: skip
"""The package reads a file that one of its tools writes and git does not know."""
SWITCHED: Mapping[str, str] = {
    "pyproject.toml": PYPROJECT, "tests/test_greet.py": TEST,
    "CONTRIBUTING.md": "# Tests\n\nThey run without the greeting server when GREET_MODE is `offline`.\n",
    "greet/__init__.py": (
        "import os\n\nif os.environ.get('GREET_MODE') != 'offline':\n    raise RuntimeError('the server is away')\n\n\n"
        "def greet(name):\n    return f'Hello {name}'\n"
    ),
}  # fmt: skip
"""The package wants a variable that only its CONTRIBUTING names."""
PLUGGED: Mapping[str, str] = {
    "pyproject.toml": PYPROJECT, "tests/test_greet.py": TEST,
    "docs/backends.md": "# Backends\n\nInstall one of them: greet-backend-of-nobody (private) or iniconfig.\n",
    "greet/__init__.py": (
        "from importlib.util import find_spec\n\nif not find_spec('tool' + 'z'):\n"
        "    raise RuntimeError('there is no backend, see docs')\n\n\ndef greet(name):\n    return f'Hello {name}'\n"
    ),
}  # fmt: skip
"""The package wants another that nothing but its documentation names."""
PLUGGED = {**PLUGGED, "docs/backends.md": PLUGGED["docs/backends.md"].replace("iniconfig", "toolz")}


class Watched(LlmPolicy):
    """The policy, and what it was shown and answered."""

    seen: list[Observation]
    answers: list[Proposal | GiveUp]

    def __init__(self, model: ChatModel, case: Case) -> None:
        super().__init__(model, case)
        self.model, self.seen, self.answers = model, [], []

    def propose(self, observation: Observation, history: History) -> Proposal | GiveUp:
        self.seen.append(observation)
        self.answers.append(super().propose(observation, history))
        return self.answers[-1]

    def transcript(self) -> Transcript:
        """The conversation as it was stored last."""
        return Transcript.from_bytes(self._case.services.artifacts.get(self.answers[-1].transcript))

    def no_rule_knows(self) -> bool:
        """Whether no skill of mergemill's has an edit for what the policy was shown first."""
        return not any(match.edits for match in matching(load(OURS), self.seen[0], self._case.tree))


@contextmanager
def project(tmp_path: Path, files: Mapping[str, str], url: str, **settings: object) -> Iterator[tuple[Case, Watched]]:
    """A project of one commit and a model that is to mend it."""
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("base", files)
    services = made(tmp_path, url, **settings)
    pull = records.pull_request(source=f"git:{repo.path}", base_commit=base)
    candidate = records.candidate(pull, created_at="2024-03-17T12:00:00+00:00", version="")
    tree = Tree(Repository(repo.path), base)
    case = Case(candidate=candidate, tree=tree, first=first_draft(tree, candidate, services), services=services)
    model = ChatModel(services.settings, first_pause=0.01)
    try:
        with Watched(model, case) as policy:
            yield case, policy
    finally:
        model.close()


def made(tmp_path: Path, url: str, **settings: object) -> Services:
    """Services with a model's address."""
    given = {"llm": url, "model": "scripted", "llm_timeout": 10, **settings}
    services = make_services(tmp_path, **given)
    return replace(services, settings=Settings.model_validate(services.settings.model_dump()))


def settled(text: str) -> str:
    """A transcript without what differs from run to run, and without what every conversation begins with."""
    text = re.sub(r"(?s)^## system\n.*?\n## user\n", "## user\n", text)
    text = re.sub(r"(?s)\nIts plan:\n.*?(?=\n## )", "\n[the plan, the log and the container]\n", text)
    text = re.sub(r"\bin \d+\.\d+s\b", "in N s", text)
    text = re.sub(r"(?m)^(rootdir|plugins|platform|cachedir).*\n", "", text)
    return re.sub(r"\b[0-9a-f]{12,40}\b", "HASH", text)
