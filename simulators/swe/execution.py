"""The simulator of what would have to be executed: a model answers for a program, from the files as they are.

It may see the gold and the test patch of the task. Nothing of them reaches the agent: an answer that holds a line which
they add and the tree lacks is refused, twice with a hint, then the agent gets a plain error. The same command on the
same tree has the same answer, for every agent, and it is paid once: the ledger's key is made of both.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, Field

from backends.llm.base import ContextLengthError, LanguageModel, Message, ModelReply
from backends.llm.ledger import CallIdentity, CallLedger, Pacer, RecordedModel
from backends.llm.meter import UsageMeter
from backends.llm.parallel import UsageTotals
from backends.llm.prompts import PromptTemplates
from backends.llm.response import FINISH_LENGTH
from backends.llm.structured import (
    NO_ANSWER,
    RETRY_MESSAGE,
    UnusableAnswerError,
    build_response_schema,
    parse_answer,
)
from evaluation.solution_lines import SolutionLines
from simulators.swe.exchange import ProgramAnswer, ProgramCall
from simulators.swe.workspace import WORKDIR, LostWorkspaceError, TreeState, Workspace

PROMPT = "execution-1"
"""Folder, with version, of the prompt."""
PURPOSE = "execution"
ATTEMPTS = 3
"""Answers that are requested for one call: the first, and two more."""
MAX_OUTPUT_CHARS = 30_000
"""Characters of each stream that a program prints, half of them from its beginning; endless output is cut."""
MAX_FILES_CHARS = 60_000
"""Characters of files in a prompt."""
MAX_FILE_CHARS = 20_000
MAX_LISTED = 400
"""Paths of the tree in a prompt."""
MAX_LOG_CHARS = 6_000
MAX_WRITTEN_FILES = 20
MAX_PAST = 4
"""Earlier calls of the same episode in a prompt."""
MAX_PAST_CHARS = 4_000
REFUSED = "it holds text of a change that nobody in this repository has yet: print what the program would, without it"
UNAVAILABLE = "{program}: the output is not available\n"
"""What the agent gets where no answer could be used."""
_PROMPTS = PromptTemplates(Path(__file__).parent / "prompts")
_WORD = re.compile(r"[\w./@+-]+")
_N_LOCKS = 64


class WrittenFile(BaseModel):
    """A file that the program writes; `content` null for one that it removes."""

    path: str = Field(min_length=1, max_length=1000)
    content: str | None


class SimulatedExecution(BaseModel):
    """What a program prints, its exit code, and the files it leaves behind."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int = Field(ge=0, le=255)
    files: list[WrittenFile] = Field(default_factory=list, max_length=MAX_WRITTEN_FILES)


@dataclass(frozen=True, kw_only=True)
class SweTask:
    """What the simulator is given of a task. The patches are shown to it alone."""

    id: str
    name: str
    repo: str
    language: str
    solution_lines: SolutionLines
    gold_patch: str = ""
    test_patch: str = ""
    gold_files: tuple[str, ...] = ()
    real_log: str = ""
    """Output of a real run of the tests of this repository, at another commit; empty where none is stored."""


@dataclass(kw_only=True)
class ExecutionCounts:
    """Calls that were answered from the ledger, and by the model now; answers refused; calls without an answer."""

    known: int = 0
    fresh: int = 0
    refused: int = 0
    unavailable: int = 0


class ExecutionSimulator:
    """Answers the calls of simulated programs. Threads may share it.

    Args:
        model: model that answers.
        ledger: ledger of its answers.
        answer_tokens: limit of one answer, which is part of the ledger's key.
    """

    def __init__(self, model: LanguageModel, ledger: CallLedger, *, answer_tokens: int) -> None:
        self.model = model
        self.counts = ExecutionCounts()
        self.totals = UsageTotals()
        self._ledger = ledger
        self._answer_tokens = answer_tokens
        self._pacer = Pacer(0)
        self._lock = threading.Lock()
        self._same_calls = tuple(threading.Lock() for _ in range(_N_LOCKS))

    def count_answers(self) -> dict[str, int]:
        """Return the counts by their names."""
        with self._lock:
            return asdict(self.counts)

    def answer(self, task: SweTask, workspace: Workspace, call: ProgramCall) -> ProgramAnswer:
        """Return the answer to a call; a plain error where none could be used.

        Raises:
            Transient, InputError: the endpoint failed or refuses key or model, or the ledger cannot be written.
            CancelledRunError: `stop` was called.
        """
        try:
            state = workspace.read_state()
            answer = self._request(_Execution(task=task, workspace=workspace, call=call, state=state))
        except (LostWorkspaceError, ContextLengthError):
            answer = None
        if answer is None:
            self._count("unavailable")
            return ProgramAnswer(stderr=UNAVAILABLE.format(program=call.argv[0]), exit_code=1)
        workspace.past.append((shlex.join(call.argv), answer))
        return answer

    def stop(self) -> None:
        """Cancel all current and future calls."""
        self._pacer.stop()
        self.model.stop()

    def _request(self, case: _Execution) -> ProgramAnswer | None:
        """Return the first answer that can be used, None if there is none."""
        content = [PURPOSE, PROMPT, self.model.name, case.task.id, case.state.tree, *case.call.argv]
        content += [case.call.folder, case.call.stdin, str(self._answer_tokens)]
        base = hashlib.sha256(json.dumps(content).encode()).hexdigest()
        # Two agents at the same point pay for the answer once.
        with self._same_calls[int(base[:8], 16) % _N_LOCKS]:
            conversation: list[Message] = []
            for attempt in range(1, ATTEMPTS + 1):
                key = hashlib.sha256(f"{base} {attempt}".encode()).hexdigest()
                line = self._ledger.find(key)
                # Rendering a prompt reads files of the container, so it is left out for answers that the ledger has.
                if line is None and not conversation:
                    conversation = list(self._render(case))
                reply = self._complete(case, conversation, key, attempt)
                try:
                    return self._read_answer(reply, case)
                except UnusableAnswerError as unusable:
                    conversation = conversation or list(self._render(case))
                    problem = RETRY_MESSAGE.format(problem=unusable)
                    conversation.append(Message(role="assistant", text=reply.text or NO_ANSWER))
                    conversation.append(Message(role="user", text=problem))
        return None

    def _complete(self, case: _Execution, conversation: Sequence[Message], key: str, attempt: int) -> ModelReply:
        settings = {"tree": case.state.tree, "command": shlex.join(case.call.argv), "prompt": PROMPT}
        identity = CallIdentity(purpose=PURPOSE, seed=case.task.id, attempt=attempt, settings=settings)
        model = RecordedModel(self.model, self._ledger, identity, self._pacer)
        meter = UsageMeter()
        schema = build_response_schema(SimulatedExecution)
        reply = model.complete(conversation, meter=meter, response_schema=schema, request_key=key)
        with self._lock:
            self.totals.add(meter)
        self._count("fresh" if model.fresh else "known")
        return reply

    def _read_answer(self, reply: ModelReply, case: _Execution) -> ProgramAnswer:
        """Return the answer of a reply.

        Raises:
            UnusableAnswerError: it has none, or one that holds a needle.
        """
        if reply.finish_reason == FINISH_LENGTH:
            raise UnusableAnswerError("it was cut off at the limit of an answer: write less")
        program_answer = parse_answer(reply.text, SimulatedExecution)
        texts = [
            program_answer.stdout,
            program_answer.stderr,
            *(f"{file.path}\n{file.content or ''}" for file in program_answer.files),
        ]
        known = f"{case.state.patch}\n{shlex.join(case.call.argv)}\n{case.call.stdin}\n{case.call.context}"
        # The texts are searched together as well, since lines of a change may be spread over them.
        if any(case.task.solution_lines.find(text, known) for text in (*texts, "\n".join(texts))):
            self._count("refused")
            raise UnusableAnswerError(REFUSED)
        return ProgramAnswer(
            stdout=shorten(program_answer.stdout),
            stderr=shorten(program_answer.stderr),
            exit_code=program_answer.exit_code,
            files=dict(_locate_files(program_answer.files, case.call.folder)),
        )

    def _render(self, case: _Execution) -> Sequence[Message]:
        call, task = case.call, case.task
        return _PROMPTS.render_conversation(
            PROMPT,
            repo=task.repo,
            language=task.language,
            command=shlex.join(call.argv),
            folder=call.folder,
            stdin=shorten(call.stdin),
            context=call.context if call.context.strip() != shlex.join(call.argv) else "",
            files=list(case.read_files()),
            listing=case.list_paths(),
            patch=shorten(case.state.patch),
            gold_patch=shorten(task.gold_patch),
            test_patch=shorten(task.test_patch),
            real_log=task.real_log[-MAX_LOG_CHARS:],
            past=[
                {"command": command, "output": shorten(answer.stdout + answer.stderr, MAX_PAST_CHARS)}
                for command, answer in case.workspace.past[-MAX_PAST:]
            ],
            schema=json.dumps(SimulatedExecution.model_json_schema()),
        )

    def _count(self, name: str) -> None:
        with self._lock:
            setattr(self.counts, name, getattr(self.counts, name) + 1)


@dataclass(frozen=True, kw_only=True)
class _Execution:
    """One call with all that its answer is made of."""

    task: SweTask
    workspace: Workspace
    call: ProgramCall
    state: TreeState

    def read_files(self) -> Iterator[dict[str, str]]:
        """Yield the files that the command may touch, those that it names first, as far as the prompt has room."""
        left = MAX_FILES_CHARS
        for path in self._choose_files():
            content = self.workspace.shell.read_file(f"{WORKDIR}/{path}")
            if content is None or b"\0" in content[:1024]:
                continue
            text = shorten(content.decode(errors="replace"), MAX_FILE_CHARS)
            if len(text) > left:
                continue
            left -= len(text)
            yield {"path": path, "text": text}

    def list_paths(self) -> list[str]:
        """Return paths of the tree: those near to the command first, then the others, at most MAX_LISTED."""
        near = {str(PurePosixPath(path).parent) for path in self._choose_files()}
        ordered = sorted(self.state.files, key=lambda path: (str(PurePosixPath(path).parent) not in near, path))
        return ordered[:MAX_LISTED]

    def _choose_files(self) -> list[str]:
        named = [path for word in _list_words(self.call) for path in self._match(word)]
        changed = sorted(self.state.changed)
        gold = [path for path in self.task.gold_files if path in self.state.files]
        return list(dict.fromkeys([*named, *changed, *gold]))

    def _match(self, word: str) -> list[str]:
        """Return the files that a word of the command may stand for: a path, or a module."""
        word = word.partition("::")[0]
        folder = PurePosixPath(self.call.folder)
        path = os.path.normpath(folder / word)
        relative = path.removeprefix(f"{WORKDIR}/")
        module = word.replace(".", "/")
        names = [relative, f"{module}.py", f"{module}/__main__.py", f"{module}/__init__.py"]
        return [name for name in names if name in self.state.files]


def shorten(text: str, most: int = MAX_OUTPUT_CHARS) -> str:
    """Return a text with its middle left out where it is longer."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"


def _list_words(call: ProgramCall) -> list[str]:
    return [word for text in (*call.argv[1:], call.context) for word in _WORD.findall(text)]


def _locate_files(files: Sequence[WrittenFile], folder: str) -> Iterator[tuple[str, bytes | None]]:
    """Yield absolute path and content of the files that a program may write: in the repository, or in /tmp."""
    for file in files:
        path = os.path.normpath(PurePosixPath(folder) / file.path)
        in_repository = path.startswith(f"{WORKDIR}/") and not path.startswith(f"{WORKDIR}/.git/")
        # This /tmp is a folder of the container.
        if "\0" not in path and (in_repository or path.startswith("/tmp/")):  # noqa: S108
            yield path, None if file.content is None else file.content.encode(errors="replace")
