"""Small projects whose builds fail, and a policy that repairs them with a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from backends.git import GitRepository
from backends.llm.client import ChatModel
from backends.services import Services
from backends.tree import CommitTree
from builders.agent.policy import LlmPolicy
from builders.agent.transcript import Transcript
from builders.build import create_first_draft
from builders.repair.policy import NoProposal, Observation, Proposal, ProposalHistory, RepairCase
from builders.repair.skill_files import BUILTIN_SKILLS, load_skills
from builders.repair.skills import find_matches
from tests import records
from tests.containers import make_services
from tests.helpers import TinyRepo
from tests.sample import PYPROJECT

TEST = 'from greet import greet\n\n\ndef test_it_says_hello():\n    assert greet("Ada") == "Hello Ada"\n'
GENERATED: Mapping[str, str] = {
    "pyproject.toml": PYPROJECT,
    "tests/test_greet.py": TEST,
    ".gitignore": "greet/words.txt\n",
    "greet/__init__.py": (
        "from pathlib import Path\n\nWORDS = (Path(__file__).parent / 'words.txt').read_text().split()\n\n\n"
        "def greet(name):\n    return f'{WORDS[0]} {name}'\n"
    ),
    "tools/make_words.py": "from pathlib import Path\n\nPath('greet/words.txt').write_text('Hello Goodbye\\n')\n",
}
"""The package reads a file that one of its tools writes and git ignores."""
SWITCHED: Mapping[str, str] = {
    "pyproject.toml": PYPROJECT,
    "tests/test_greet.py": TEST,
    "CONTRIBUTING.md": "# Tests\n\nThey run without the greeting server when GREET_MODE is `offline`.\n",
    "greet/__init__.py": (
        "import os\n\nif os.environ.get('GREET_MODE') != 'offline':\n    raise RuntimeError('the server is away')\n\n\n"
        "def greet(name):\n    return f'Hello {name}'\n"
    ),
}
"""The package requires a variable that only its CONTRIBUTING names."""
PLUGGED: Mapping[str, str] = {
    "pyproject.toml": PYPROJECT,
    "tests/test_greet.py": TEST,
    "docs/backends.md": "# Backends\n\nInstall one of them: greet-backend-of-nobody (private) or iniconfig.\n",
    "greet/__init__.py": (
        "from importlib.util import find_spec\n\nif not find_spec('tool' + 'z'):\n"
        "    raise RuntimeError('there is no backend, see docs')\n\n\ndef greet(name):\n    return f'Hello {name}'\n"
    ),
}
"""The package requires another one that only its documentation names."""
PLUGGED = {**PLUGGED, "docs/backends.md": PLUGGED["docs/backends.md"].replace("iniconfig", "toolz")}


class RecordingPolicy(LlmPolicy):
    """The policy, with recorded observations and answers."""

    observations: list[Observation]
    answers: list[Proposal | NoProposal]

    def __init__(self, model: ChatModel, case: RepairCase) -> None:
        super().__init__(model, case)
        self.model, self.observations, self.answers = model, [], []

    def propose(self, observation: Observation, history: ProposalHistory) -> Proposal | NoProposal:
        self.observations.append(observation)
        self.answers.append(super().propose(observation, history))
        return self.answers[-1]

    def load_transcript(self) -> Transcript:
        """Return the conversation as stored last."""
        return Transcript.from_bytes(self._case.services.artifacts.get(self.answers[-1].transcript))

    def has_no_matching_rule(self) -> bool:
        """Return whether no built-in skill has an edit for the first observation."""
        return not any(
            match.edits for match in find_matches(load_skills(BUILTIN_SKILLS), self.observations[0], self._case.tree)
        )


@contextmanager
def open_case(
    tmp_path: Path, files: Mapping[str, str], url: str, **settings: object
) -> Iterator[tuple[RepairCase, RecordingPolicy]]:
    """Yield a case with a project of one commit, and the policy of a model that repairs it."""
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("base", files)
    services = create_services(tmp_path, url, **settings)
    pull = records.make_pull_request(source=f"git:{repo.path}", base_commit=base)
    candidate = records.make_candidate(pull, created_at="2024-03-17T12:00:00+00:00", version="", test_files=())
    tree = CommitTree(GitRepository(repo.path), base)
    case = RepairCase(
        candidate=candidate, tree=tree, first_draft=create_first_draft(tree, candidate, services), services=services
    )
    model = ChatModel(services.settings.llm, services.settings.host, first_pause=0.01)
    try:
        with RecordingPolicy(model, case) as policy:
            yield case, policy
    finally:
        model.close()


def create_services(tmp_path: Path, url: str, **settings: object) -> Services:
    """Return services with the address of a model."""
    options = {"llm": url, "model": "scripted", "llm_timeout": 10, **settings}
    return make_services(tmp_path, **options)


def normalize(text: str) -> str:
    """Return a transcript without its system prompt and without values that differ between runs."""
    text = re.sub(r"(?s)^## system\n.*?\n## user\n", "## user\n", text)
    text = re.sub(r"(?s)\nIts plan:\n.*?(?=\n## )", "\n[the plan, the log and the container]\n", text)
    text = re.sub(r"\bin \d+\.\d+s\b", "in N s", text)
    text = re.sub(r"(?m)^(rootdir|plugins|platform|cachedir).*\n", "", text)
    return re.sub(r"\b[0-9a-f]{12,40}\b", "HASH", text)
