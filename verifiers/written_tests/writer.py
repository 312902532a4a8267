"""The conversation with the model: its prompt, and the objections to the text that it wrote."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os.path import commonpath
from pathlib import Path

from backends.llm.base import ContextLengthError, Message
from backends.llm.meter import BudgetExceededError
from backends.llm.prompts import PromptTemplates
from backends.llm.structured import build_response_schema
from backends.tree import CommitTree
from languages.registry import get_language
from taskdb.records import BuildPlan, Candidate
from verifiers.judge.client import JudgeClient
from verifiers.judge.truncation import divide_budget, truncate_patch
from verifiers.written_tests.answer import Objection, WritingReason, WrittenTestsAnswer

PROMPT = "write-tests-1"
"""Name and version of the prompt."""
MAX_LISTED_FILES = 40
MAX_EXAMPLE_CHARS = 6000
_PROMPTS = PromptTemplates(Path(__file__).parent / "prompts")


@dataclass(kw_only=True)
class TestWriter:
    """The tests of a change, written again after each objection."""

    __test__ = False
    candidate: Candidate
    plan: BuildPlan
    tree: CommitTree
    gold_patch: str
    client: JudgeClient
    transcript: tuple[Message, ...] = ()
    """The last conversation."""
    _retries: list[Message] = field(default_factory=list)

    def write(self) -> WrittenTestsAnswer | Objection:
        """Return the next answer, or why there is none.

        Raises:
            Transient: the endpoint failed.
            InputError: the endpoint rejects key, model or request.
        """
        try:
            answer = self.client.query(lambda room: (*self._build_question(room), *self._retries), WrittenTestsAnswer)
        except (BudgetExceededError, ContextLengthError) as error:
            return Objection(reason=WritingReason.NO_ANSWER, detail=str(error), is_final=True)
        self.transcript = answer.messages
        if answer.value is None:
            return Objection(reason=WritingReason.NO_ANSWER, detail=answer.problem, is_final=True)
        return answer.value

    def object(self, objection: Objection) -> None:
        """Add an objection to the last answer to the conversation."""
        again = _PROMPTS.render_message(PROMPT, "again", reason=objection.reason, detail=objection.detail)
        self._retries += [self.transcript[-1], again]

    def _build_question(self, room: int) -> tuple[Message, ...]:
        rooms = divide_budget([len(self.candidate.problem_statement), len(self.gold_patch)], max(room, 1000))
        language = get_language(self.candidate.language)
        return _PROMPTS.render_conversation(
            PROMPT,
            schema=json.dumps(build_response_schema(WrittenTestsAnswer).schema),
            repo=self.candidate.repo,
            language=language.title,
            framework=self.plan.test.framework,
            command=" ".join(self.plan.test.argv),
            statement=self.candidate.problem_statement[: rooms[0]],
            gold_patch=truncate_patch(self.gold_patch, rooms[1]).text,
            test_files=self._test_files[:MAX_LISTED_FILES],
            example_path=self._example[0],
            example=self._example[1],
        )

    @cached_property
    def _test_files(self) -> Sequence[str]:
        """Test files of the base tree, those near the changed files first."""
        test_files = get_language(self.candidate.language).find_test_files(self.tree)
        near = {path: max(len(commonpath([path, gold])) for gold in self.candidate.gold_files) for path in test_files}
        return sorted(test_files, key=lambda path: (-near[path], path))

    @cached_property
    def _example(self) -> tuple[str, str]:
        """Path and beginning of the first test file; empty where there is none."""
        if not self._test_files:
            return "", ""
        path = self._test_files[0]
        return path, self.tree.read(path)[:MAX_EXAMPLE_CHARS]
