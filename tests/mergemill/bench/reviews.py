"""Hand-made reviews of a small file, and a judge with scripted opinions on their claims."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from taskdb.artifacts import Artifacts
from taskdb.records import Kind, Task
from taskdb.records.oracles import Defect, LaterFix, ReviewOracle
from taskdb.store import Store
from tests.backends.llm.server import ScriptedAnswer, ScriptedResponse
from tests.taskdb.lineages import add_lineage

PATH = "cart.py"
CODE = '''\
class Cart:
    """Items of a customer, with their prices."""

    def __init__(self, items):
        self.items = items

    def total(self):
        n = 0
        for i in range(len(self.items) - 1):
            n += self.items[i].price
        return n

    def first_name(self):
        return self.items[0].name

    def discount(self, percent):
        return self.total() * percent / 100

'''
TEXT = CODE + "".join(f"    def row_{n}(self):\n        return self.items[{n}].name\n\n" for n in range(14))
LOOP, CLAIM = 9, "The last item is left out of the total"
"""Line of the known defect, and its claim."""
ELSEWHERE = "The total is wrong for carts with a single item"
"""Golden comment without lines."""


FIXES = (LaterFix(path=PATH, first_line=17, last_line=17, message="Let a discount be subtracted from the total"),)
OPINIONS: Mapping[str, str] = {
    "leaves out the last item": "same",
    "the sum lacks an item": "same",
    "single item": "same",
    "the discount is not subtracted": "same",
    "fails for an empty cart": "valid",
    "may be slow": "invalid",
    "something may be wrong": "invalid",
    "prices may be negative": "unclear",
    "rounds cents": "forged",
}
"""Words of a claim -> whether it describes the known defect, else the judge's verdict on it, `forged`: without a quote
of the code."""


def answer_judge(request: Mapping[str, Any]) -> ScriptedResponse:
    """Answer the question whether a finding describes a defect, or whether it is valid."""
    system, user = (message["content"] for message in request["messages"][:2])
    finding = user.rpartition("The finding, at lines")[2]
    opinion = next((verdict for words, verdict in OPINIONS.items() if words in finding), "invalid")
    if "Decide whether the finding describes this defect" in system:
        claim = finding.split("\n")[2]
        line = next(line for line in user.split("\n") if line.startswith("    "))
        same = {"why": "Read.", "words": claim, "code": line, "same": "yes" if opinion == "same" else "no"}
        return ScriptedAnswer(text=json.dumps(same))
    quote = "round(cents, 2)" if opinion == "forged" else "return self.items[0].name"
    verdict = "valid" if opinion in ("forged", "same") else opinion
    return ScriptedAnswer(text=json.dumps({"behaviour": "It reads.", "quote": quote, "verdict": verdict}))


def make_finding(line: int, claim: str, path: str = PATH) -> dict[str, Any]:
    return {"file": path, "first_line": line, "last_line": line, "claim": claim}


def encode_review(*findings: Mapping[str, Any]) -> bytes:
    return json.dumps({"findings": findings}).encode()


def add_review_task(
    store: Store,
    artifacts: Artifacts,
    number: int,
    defects: tuple[Defect, ...],
    *,
    tree: str | None = None,
    others: tuple[LaterFix, ...] = (),
    **fields: Any,
) -> Task:
    """Add a certified review task; without defects it is a control."""
    files = artifacts.put_text(json.dumps({PATH: TEXT}))
    oracle = ReviewOracle(
        target="before-fix" if defects else "clean", files=files, diff=None, defects=defects, tree=tree, others=others
    )
    given = {"kind": Kind.REVIEW, "oracle": oracle, "plan": None, "eval_script": None, "image": "", "image_digest": ""}
    name = f"ada__greet-{number}.review-1"
    task_fields = {**given, "environment": "none", "name": name, **fields}
    return add_lineage(store, number, gold_patch=artifacts.put_text("gold"), task_fields=task_fields)


KNOWN = (Defect(path=PATH, first_line=LOOP, last_line=LOOP + 1, claim=CLAIM),)
GOLDEN = (Defect(path="", first_line=0, last_line=0, claim=ELSEWHERE),)
FOUND = make_finding(LOOP, "The loop of `total` leaves out the last item")
TRUE = make_finding(14, "`first_name` fails for an empty cart")
FALSE = make_finding(17, "`discount` may be slow")
INVENTED = make_finding(17, "`apply_voucher` is called twice")
