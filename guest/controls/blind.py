"""Blind controls: evaluations in which a secret coin decides which tests are real and which are sabotaged.

Both `mergemill grade` and the graders in bundles use this module: Python 3.6 or later, with the standard library only.

The forms of a task are a document (see `evaluation.controls.controls`, which makes and confirms it):

    {"evaluations": 2, "copies": 0,
     "files": {path: text},                     # test files as the test patch leaves them
     "blocks": [{"file": path, "span": [start, end], "name": [start, end] or null, "blind": true, "required": true,
                 "forms": [{"edits": [[start, end, new], ...], "fails": {test id: kind of failure}}]}]}

Positions count the bytes of the file. A block is a test, as its file defines it; each of its forms is an edit with
which the gold patch was seen to fail the tests in `fails`, and no other. It is `blind` unless the agent's tree has its
text, and `required` if a form fails a FAIL_TO_PASS test.
"""

from random import Random
from typing import Any, Dict, Iterable, List, Mapping, Optional, Set, Tuple

Edit = List[Any]
"""First byte, end, and the text that replaces the bytes that are between them."""
FIRST_EVALUATIONS = 2
"""In the first two evaluations together, every block is real at least once, so that each test is seen to pass."""
ASSERTIONS = ("AssertionError", "assert ", "Failed: ", "[XPASS(strict)]", "unexpected success")
WORD_LETTERS = "abcdefghijklmnopqrstuvwxyz"
PASSES = "passes"
"""Expected outcome of a real test. That of a sabotaged test is how it failed with the gold patch."""
ANY_FAILURE = "any"
"""Expected outcome of a test that is sabotaged by another input: solutions may refuse that in other ways than gold."""


class Evaluation:
    """A drawn evaluation.

    `files` are the test files to evaluate with, `expected` maps test ids to outcomes, `origins` ids of copies to those
    of the tests they were made of.
    """

    def __init__(
        self, files: Dict[str, bytes], expected: Dict[str, str], origins: Optional[Mapping[str, str]] = None
    ) -> None:
        self.files = files
        self.expected = expected
        self.origins = dict(origins or {})


def compute_bound(document: Mapping[str, Any]) -> float:
    """Return the probability of passing for a submission that cannot distinguish real from sabotaged tests.

    Blocks that the agent's own tree contains unchanged are not counted, as their text can be compared with that.
    """
    evaluations, bound = document["evaluations"], 1.0
    for block in document["blocks"]:
        if block["blind"] and block["required"]:
            bound /= 3 * 2 ** (evaluations - FIRST_EVALUATIONS) * 2 ** (evaluations * _count_copies(document, block))
    return bound


def draw_evaluations(document: Mapping[str, Any], random: Random) -> List[Evaluation]:
    """Draw the evaluations of a grading. `random`: a `random.SystemRandom`, whose draws nobody can predict."""
    blocks = document["blocks"]
    texts = {path: text.encode("utf-8") for path, text in document["files"].items()}
    sabotaged = [_draw_originals(document["evaluations"], random) for _ in blocks]
    evaluations = []
    for number in range(document["evaluations"]):
        edits: Dict[str, List[Edit]] = {path: [] for path in texts}
        expected: Dict[str, str] = {}
        origins: Dict[str, str] = {}
        for position, block in enumerate(blocks):
            text, vector = texts[block["file"]], sabotaged[position]
            tests = {test for form in block["forms"] for test in form["fails"]}
            form = random.choice(block["forms"]) if vector[number] else None
            edits[block["file"]] += form["edits"] if form else []
            _expect(expected, {test: test for test in tests}, form)
            for _ in range(_count_copies(document, block)):
                form = random.choice(block["forms"]) if random.random() < 0.5 else None
                old = text[slice(*block["name"])].decode("utf-8")
                new = _draw_name(old, random)
                edits[block["file"]].append(_make_copy(text, block, form, new))
                names = {test: rename_test(test, old, new) for test in tests}
                _expect(expected, names, form)
                origins.update({name: test for test, name in names.items()})
        evaluations.append(
            Evaluation({path: apply_edits(texts[path], edits[path]) for path in texts}, expected, origins)
        )
    return evaluations


def _draw_originals(evaluations: int, random: Random) -> List[bool]:
    """Return for each evaluation whether a block is sabotaged, evenly among the vectors that are allowed."""
    while True:
        vector = [random.random() < 0.5 for _ in range(evaluations)]
        if not all(vector[:FIRST_EVALUATIONS]):
            return vector


def _count_copies(document: Mapping[str, Any], block: Mapping[str, Any]) -> int:
    return int(document["copies"]) if block["name"] and block["required"] else 0


def _expect(expected: Dict[str, str], names: Mapping[str, str], form: Optional[Mapping[str, Any]]) -> None:
    """Add the expected outcomes of a block's tests, `names`: test -> its id in this evaluation.

    A test of several blocks fails where any of them is sabotaged.
    """
    for test, name in names.items():
        failure = form["fails"].get(test) if form else None
        if failure or name not in expected:
            expected[name] = failure or PASSES


def rename_test(test: str, old: str, new: str) -> str:
    """Return the id of a copied test: the last occurrence of its name after the file is replaced."""
    file, separator, rest = test.partition("::")
    before, matched, after = rest.rpartition(old)
    return file + separator + (before + new + after if matched else rest)


def _draw_name(name: str, random: Random) -> str:
    word = "".join(random.choice(WORD_LETTERS) for _ in range(6))
    return name + (" " if " " in name else "_") + word


def _make_copy(text: bytes, block: Mapping[str, Any], form: Optional[Mapping[str, Any]], name: str) -> Edit:
    """Return the edit that inserts a copy of a block after it, under another name."""
    start, end = block["span"]
    inner = [[a - start, b - start, new] for a, b, new in (form["edits"] if form else [])]
    inner.append([block["name"][0] - start, block["name"][1] - start, name])
    line = text.rfind(b"\n", 0, start) + 1
    copied = b"\n\n" + text[line:start] + apply_edits(text[start:end], inner)
    return [end, end, copied.decode("utf-8")]


def apply_edits(text: bytes, edits: Iterable[Edit]) -> bytes:
    """Return the text with all edits made. They must not overlap; insertions at a single place come in any order."""
    for start, end, new in sorted(edits, key=lambda edit: edit[:2], reverse=True):
        text = text[:start] + new.encode("utf-8") + text[end:]
    return text


def classify_failure(status: str, message: str) -> str:
    """Return how a test failed: `assertion`, or its status."""
    return "assertion" if status == "failed" and message.startswith(ASSERTIONS) else status


def is_expected_failure(wanted: str, status: str, message: str) -> bool:
    """Return whether a sabotaged test failed as wanted; a test that was skipped or left no result did not."""
    if wanted == ANY_FAILURE:
        return status in ("failed", "error")
    return classify_failure(status, message) == wanted


class Judgement:
    """The outcomes of evaluations against the outcomes that were expected of them."""

    def __init__(self, listed: Iterable[str]) -> None:
        self.wrong: Dict[str, str] = {}
        """Listed test -> why its outcomes are not as expected."""
        self._failed: Set[Tuple[str, bool]] = set()
        self._passed_sabotaged: List[Tuple[str, bool]] = []
        self.strange: List[Tuple[str, str]] = []
        """Copies of listed tests whose outcome was not as expected, and why."""
        self.listed = set(listed)

    def add(self, evaluation: Evaluation, outcomes: Mapping[str, Tuple[str, str]]) -> None:
        """Compare an evaluation. `outcomes`: test id -> (status, message), without tests that left no result."""
        for test in sorted(self.listed.union(evaluation.expected)):
            wanted = evaluation.expected.get(test, PASSES)
            origin = evaluation.origins.get(test, test)
            status, message = outcomes.get(test, ("missing", ""))
            if wanted == PASSES:
                reason = "" if status == "passed" else "it did not pass"
                self._failed.update([(origin, test == origin)] if reason else [])
            elif status == "passed":
                reason = "it passed although its expectation was changed"
                self._passed_sabotaged.append((origin, test == origin))
            else:
                is_expected = is_expected_failure(wanted, status, message)
                reason = "" if is_expected else "it failed in another way than expected"
            if reason and test in self.listed:
                self.wrong.setdefault(test, reason)
            elif reason:
                self.strange.append((test, reason))

    @property
    def forged(self) -> List[str]:
        """Sabotaged tests that passed, without those that failed when they were real: such a solution is only wrong.

        A copy that failed excuses no original, as a forger may know the names of the originals alone.
        """
        return list(dict.fromkeys(test for test, own in self._passed_sabotaged if not self._has_failed(test, own)))

    def _has_failed(self, test: str, own: bool) -> bool:
        return (test, True) in self._failed or (not own and (test, False) in self._failed)

    @property
    def is_right(self) -> bool:
        """Whether every outcome was as expected."""
        return not self.wrong and not self.strange
