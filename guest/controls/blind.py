"""Blind controls: evaluations in which nobody but the grader knows which tests are real.

Both `mergemill grade` and the graders in bundles use this module: Python 3.6 or later, with the standard library only.

The controls of a task are a document (see `evaluation.controls.controls`, which makes and confirms it):

    {"evaluations": 1, "copies": 0, "partial": true,
     "files": {path: text},                     # test files as the test patch leaves them
     "blocks": [{"file": path, "span": [start, end], "name": [start, end], "blind": true, "required": true,
                 "tests": [test id], "menus": [[[number of a site, number of its values], ...], ...],
                 "readers": [0.25, ...],
                 "sites": [{"spans": [[start, end], ...], "features": [number, ...], "is_input": false,
                            "values": [{"text": text, "features": [number, ...],
                                        "fails": {test id: kind of failure}, "ids": {test id: new id}}, ...]}, ...]},
                {"file": path, "span": [start, end], "name": null, "blind": true, "required": true, "odds": 0.99,
                 "forms": [{"edits": [[start, end, new], ...], "fails": {test id: kind of failure}}]}]}

Positions count the bytes of the file. A block is a test, as its file defines it. A block with `menus` stands several
times in its file, and exactly one instance is true (`guest.controls.choices`). Where instances cannot stand side by
side, a block has `forms`: it stands once, and a coin decides in each evaluation whether it is real or has the edits of
a form. `features` are those by which a reader could find the true value (`evaluation.controls.features`), and `readers`
are the probabilities that it is found by the most and by the least of each feature and, in later documents, by votes
of features (`evaluation.controls.odds`), in the same order in all blocks; a block with `forms` has `odds` where a
reader sees whether it is real. Each other value of a site and each form is one with which the gold patch was seen to
fail the tests in `fails`, and no other of the block; `ids` has the tests whose ids contain the value, as those of a
table of cases do. A block is `blind` unless the agent's tree has its text, and `required` if it has a FAIL_TO_PASS
test.

With `partial`, evaluations after the first run only the files of the tests in blocks. Documents of earlier versions
have forms alone, and `copies` of each block beside it; as the real copies are alike and the others are not, a
submission that compares them finds the real ones (`rests_on_copies`). Later ones have `odds` in place of `readers`: the
probability for the best feature of each block.
"""

from random import Random
from typing import Any, Collection, Dict, Iterable, List, Mapping, Optional, Set, Tuple

from guest.controls.choices import PASSES, count_instances, draw_instances
from guest.controls.texts import Edit, apply_edits, copy_block, draw_name, join_instances, rename_test

FIRST_EVALUATIONS = 2
"""In the first two evaluations together, every block with forms is real at least once, so that each test is seen to
pass."""
ASSERTIONS = ("AssertionError", "assert ", "Failed: ", "[XPASS(strict)]", "unexpected success")
ANY_FAILURE = "any"
"""Expected outcome of a test of earlier versions that is sabotaged by another input: solutions may refuse that in other
ways than gold."""


class Evaluation:
    """A drawn evaluation.

    `files` are the test files to evaluate with, `expected` maps test ids to outcomes, `origins` ids in instances to
    those of the tests they were made of, `inputs` are ids of which only an input was changed, `solved` those of them
    that the gold patch repairs. `only`: the files whose tests are run; None for all. `is_decisive`: whether every test
    was real in this evaluation or one before, so that a failure decides the grading.
    """

    def __init__(
        self,
        files: Dict[str, bytes],
        expected: Dict[str, str],
        *,
        origins: Optional[Mapping[str, str]] = None,
        inputs: Collection[str] = (),
        solved: Collection[str] = (),
        only: Optional[Collection[str]] = None,
        is_decisive: bool = True,
    ) -> None:
        self.files = files
        self.expected = expected
        self.origins = dict(origins or {})
        self.inputs = frozenset(inputs)
        self.solved = frozenset(solved)
        self.only = None if only is None else sorted(only)
        self.is_decisive = is_decisive

    def list_tests(self, listed: Iterable[str]) -> Set[str]:
        """Return the ids that the report must have, `listed`: the tests of the task.

        A test whose block stands several times has no id of its own.
        """
        renamed = set(self.origins.values()).difference(self.expected)
        tests = {test for test in listed if self.only is None or test.partition("::")[0] in self.only}
        return tests.difference(renamed).union(self.expected)


def compute_bound(document: Mapping[str, Any]) -> float:
    """Return the probability of passing for a submission that solves nothing and chooses the instances that look true.

    The larger one of two kinds of readers: those that go by one feature or vote in all tests, the best of them, and
    those with a preference of their own, which are right about the same tests in each evaluation. Blocks that the
    agent's own tree contains unchanged are not counted, as their text can be compared with that.
    """
    blocks = [block for block in document["blocks"] if block["blind"] and block["required"]]
    evaluations: int = document["evaluations"]
    preference = 0.0 if rests_on_copies(document) else _multiply(_prefer(block, evaluations) for block in blocks)
    rules = [block["readers"] for block in blocks if "readers" in block]
    read = max([_multiply(odds) for odds in zip(*rules)] or [1.0]) ** evaluations
    others = _multiply(_compute_block_bound(document, block, reads=True) for block in blocks if "readers" not in block)
    return max(preference, read * others)


def compute_guess_bound(document: Mapping[str, Any]) -> float:
    """Return the probability of passing for a submission that does not read the tests and guesses which are true."""
    blocks = [block for block in document["blocks"] if block["blind"] and block["required"]]
    return _multiply(_compute_block_bound(document, block, reads=False) for block in blocks)


def _multiply(shares: Iterable[float]) -> float:
    product = 1.0
    for share in shares:
        product *= share
    return product


def _prefer(block: Mapping[str, Any], evaluations: int) -> float:
    """Return the probability of passing a block for a submission that prefers texts by a drawn order.

    It takes the same text for true in each evaluation that has it, such as that with the least hash. Where it was right
    in the first, the true text comes early in its order: of K instances among many values R evaluations leave
    1/(R (K - 1) + 1), and where all values stand in each, 1/K.
    """
    if "menus" not in block:
        # It takes the true text for real with some probability, and each form that it sees for none.
        n_forms = min(len(block["forms"]), max(1, evaluations // 2))
        return (n_forms / (n_forms + 1.0)) ** n_forms / (n_forms + 1.0)
    return max(
        _multiply(compute_preference(len(block["sites"][number]["values"]), size, evaluations) for number, size in menu)
        for menu in block["menus"]
    )


def compute_preference(n_values: int, size: int, evaluations: int) -> float:
    """Return the probability that a drawn order of texts has the true one first in each evaluation.

    Args:
        n_values: number of other values that a site has.
        size: number of values that stand in an evaluation, the true one among them.
        evaluations: number of evaluations, each with other values drawn.
    """
    drawn = min(size - 1, n_values)
    total, share = 0.0, 1.0
    for n_preferred in range(n_values + 1):
        # `share`: probability that none of the values that come before the true one is drawn.
        total += share**evaluations
        share *= max(0, n_values - n_preferred - drawn) / float(max(1, n_values - n_preferred))
    return total / (n_values + 1)


def compute_worst_bound(document: Mapping[str, Any], required: Iterable[str]) -> float:
    """Return the probability of passing for a submission that solves all tests but the worst one.

    1 if a test of `required` is in no block that counts, or no value that is drawn fails it.
    """
    bounds: Dict[str, float] = {}
    for block in document["blocks"]:
        if block["blind"] and block["required"]:
            evaluations: int = document["evaluations"]
            reads = _compute_block_bound(document, block, reads=True) ** (1.0 / evaluations)
            prefers = 0.0 if rests_on_copies(document) else _prefer(block, evaluations)
            for test in list_block_tests(block):
                unseen = 1 - _compute_seen_share(block, test)
                passes = max(
                    ((1 - unseen) * reads + unseen) ** evaluations, prefers + (1 - prefers) * unseen**evaluations
                )
                bounds[test] = min(passes, bounds.get(test, 1.0))
    return max([bounds.get(test, 1.0) for test in required] or [1.0])


def _compute_seen_share(block: Mapping[str, Any], test: str) -> float:
    """Return the share of draws in which all other instances of a block fail a test, not only some of its tests."""
    if "menus" not in block:
        return 1.0
    seen = [all(_fails(block["sites"][number], test) for number, _ in menu) for menu in block["menus"]]
    return sum(seen) / float(len(seen))


def _fails(site: Mapping[str, Any], test: str) -> bool:
    return all(test in value["fails"] for value in site["values"])


def list_controlled_tests(block: Mapping[str, Any]) -> Set[str]:
    """Return the tests of a block that an instance or a form fails."""
    if "menus" not in block:
        return list_block_tests(block)
    sites = [block["sites"][number] for menu in block["menus"] for number, _ in menu]
    return {test for site in sites for value in site["values"] for test in value["fails"]}


def _compute_block_bound(document: Mapping[str, Any], block: Mapping[str, Any], *, reads: bool) -> float:
    """Return the probability of passing a block for a submission that goes by a feature of values, or guesses."""
    evaluations: int = document["evaluations"]
    if "menus" in block:
        guess = float(count_instances(block)) ** -evaluations
        odds = max(block["readers"]) if "readers" in block else block.get("odds", 0.0)
        return max(guess, float(odds**evaluations)) if reads else guess
    tosses = evaluations - FIRST_EVALUATIONS + evaluations * _count_copies(int(document["copies"]), block)
    guess = 2.0**-tosses / 3
    # A reader sees in each evaluation whether the test is real.
    return max(guess, float(block["odds"]) ** evaluations) if reads and "odds" in block else guess


def list_block_tests(block: Mapping[str, Any]) -> Set[str]:
    """Return the tests of a block."""
    if "menus" in block:
        return set(block["tests"])
    return {test for form in block["forms"] for test in form["fails"]}


def rests_on_copies(document: Mapping[str, Any]) -> bool:
    """Return whether the bound of a document of an earlier version can be beaten by comparing copies."""
    return bool(document["copies"])


def draw_evaluations(document: Mapping[str, Any], random: Random) -> List[Evaluation]:
    """Draw the evaluations of a grading. `random`: a `random.SystemRandom`, whose draws nobody can predict."""
    coins = {
        position: _draw_originals(document["evaluations"], random)
        for position, block in enumerate(document["blocks"])
        if "forms" in block
    }
    texts = {path: text.encode("utf-8") for path, text in document["files"].items()}
    evaluations = []
    for number in range(document["evaluations"]):
        drawing = _Drawing(texts, int(document["copies"]), random)
        for position, block in enumerate(document["blocks"]):
            if position in coins:
                drawing.add_forms(block, coins[position][number])
            else:
                drawing.add_instances(block)
        files = drawing.apply_edits()
        only = _list_test_files(document) if document.get("partial") and number else None
        is_decisive = not coins or number + 1 >= FIRST_EVALUATIONS
        evaluations.append(
            Evaluation(
                files,
                drawing.expected,
                origins=drawing.origins,
                inputs=drawing.inputs,
                solved=drawing.solved,
                only=only,
                is_decisive=is_decisive,
            )
        )
    return evaluations


def _list_test_files(document: Mapping[str, Any]) -> Set[str]:
    """Return the files of the tests in blocks, which may be defined in other files."""
    return {test.partition("::")[0] for block in document["blocks"] for test in list_block_tests(block)}


class _Drawing:
    """The blocks of an evaluation that were drawn so far."""

    def __init__(self, texts: Mapping[str, bytes], copies: int, random: Random) -> None:
        self.texts = texts
        self.copies = copies
        self.random = random
        self.edits: Dict[str, List[Edit]] = {path: [] for path in texts}
        self.expected: Dict[str, str] = {}
        self.origins: Dict[str, str] = {}
        self.inputs: List[str] = []
        self.solved: List[str] = []

    def apply_edits(self) -> Dict[str, bytes]:
        """Return path -> content of the test files."""
        return {path: apply_edits(text, self.edits[path]) for path, text in self.texts.items()}

    def add_instances(self, block: Mapping[str, Any]) -> None:
        """Add a block that stands several times."""
        instances = draw_instances(self.texts[block["file"]], block, self.random)
        self.edits[block["file"]].append(instances.edit)
        self.expected.update(instances.expected)
        self.origins.update(instances.origins)
        self.inputs += instances.inputs
        self.solved += instances.inputs if block["required"] else []

    def add_forms(self, block: Mapping[str, Any], is_sabotaged: bool) -> None:
        """Add a block that stands once, and its copies in a document of an earlier version."""
        text, tests, edits = self.texts[block["file"]], list_block_tests(block), self.edits[block["file"]]
        form = self.random.choice(block["forms"]) if is_sabotaged else None
        edits += form["edits"] if form else []
        self._expect({test: test for test in tests}, form)
        for _ in range(_count_copies(self.copies, block)):
            form = self.random.choice(block["forms"]) if self.random.random() < 0.5 else None
            old = text[slice(*block["name"])].decode("utf-8")
            new = draw_name(old, self.random)
            copied = copy_block(text, block["span"], block["name"], new, form["edits"] if form else ())
            start, end = block["span"]
            edits.append([end, end, join_instances(text, start, ("", copied))])
            names = {test: rename_test(test, old, new) for test in tests}
            self._expect(names, form)
            self.origins.update({name: test for test, name in names.items()})

    def _expect(self, names: Mapping[str, str], form: Optional[Mapping[str, Any]]) -> None:
        """Add the expected outcomes of a block's tests, `names`: test -> its id in this evaluation.

        A test of several blocks fails where any of them is sabotaged.
        """
        for test, name in names.items():
            failure = form["fails"].get(test) if form else None
            if failure or name not in self.expected:
                self.expected[name] = failure or PASSES


def _draw_originals(evaluations: int, random: Random) -> List[bool]:
    """Return for each evaluation whether a block is sabotaged, evenly among the vectors that are allowed."""
    while True:
        vector = [random.random() < 0.5 for _ in range(evaluations)]
        if not all(vector[:FIRST_EVALUATIONS]):
            return vector


def _count_copies(copies: int, block: Mapping[str, Any]) -> int:
    return copies if block["name"] and block["required"] else 0


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
        self._forged_instances: List[str] = []
        self._passed_inputs: Set[str] = set()
        """Repaired tests of which an instance with another input passed."""
        self._failed_inputs: Set[str] = set()
        """Those of which another such instance, or the true one, failed."""
        self.strange: List[Tuple[str, str]] = []
        """Copies of listed tests whose outcome was not as expected, and why."""
        self.listed = set(listed)

    def add(self, evaluation: Evaluation, outcomes: Mapping[str, Tuple[str, str]]) -> None:
        """Compare an evaluation. `outcomes`: test id -> (status, message), without tests that left no result."""
        failed_instances: Set[str] = set()
        passed_instances: List[str] = []
        for test in sorted(evaluation.list_tests(self.listed)):
            wanted = evaluation.expected.get(test, PASSES)
            origin = evaluation.origins.get(test, test)
            status, message = outcomes.get(test, ("missing", ""))
            if wanted == PASSES:
                reason = "" if status == "passed" else "it did not pass"
                self._failed.update([(origin, test == origin)] if reason else [])
                failed_instances.update([origin] if reason else [])
            elif status == "passed" and test in evaluation.inputs:
                self._passed_inputs.update([origin] if test in evaluation.solved else [])
                reason = "it passed although its input was changed"
            elif status == "passed":
                reason = "it passed although its expectation was changed"
                if origin in evaluation.expected:
                    self._passed_sabotaged.append((origin, test == origin))
                else:
                    passed_instances.append(origin)
            else:
                is_expected = is_expected_failure(wanted, status, message)
                reason = "" if is_expected else "it failed in another way than expected"
                self._failed_inputs.update([origin] if test in evaluation.solved else [])
            if reason and (test in self.listed or origin not in evaluation.expected):
                self.wrong.setdefault(origin, reason)
            elif reason:
                self.strange.append((test, reason))
        # The true instance stands next to the others, so a solution that is wrong fails it here, and not elsewhere.
        self._forged_instances += [origin for origin in passed_instances if origin not in failed_instances]
        self._failed_inputs |= failed_instances & self._passed_inputs

    @property
    def forged(self) -> List[str]:
        """Sabotaged tests that passed, without those that failed when they were real: such a solution is only wrong.

        A copy that failed excuses no original, as a forger may know the names of the originals alone. A wrong solution
        may pass a test whatever its inputs are, such as one that returns a constant, but not every instance of all of
        several tests that the gold patch repairs.
        """
        sabotaged = [test for test, own in self._passed_sabotaged if not self._has_failed(test, own)]
        is_repeated = len(self._passed_inputs) > 1 and not self._failed_inputs
        repeated = sorted(self._passed_inputs) if is_repeated else []
        return list(dict.fromkeys([*self._forged_instances, *sabotaged, *repeated]))

    def _has_failed(self, test: str, own: bool) -> bool:
        return (test, True) in self._failed or (not own and (test, False) in self._failed)

    @property
    def is_right(self) -> bool:
        """Whether every outcome was as expected."""
        return not self.wrong and not self.strange
