"""A question with its walk, certificate and rejection, as `explore show` prints it."""

from __future__ import annotations

import json
from typing import Any

from taskdb.artifacts import Artifacts
from taskdb.queries.questions import QuestionFilters, list_questions, load_certificate, load_rejection
from taskdb.records.questions import ExploreStep, Question, Walk
from taskdb.store import Store


def describe_question(store: Store, artifacts: Artifacts, question: Question) -> dict[str, Any]:
    """Return a question with `walk`, `certificate` (path included), `rejection` and the `rounds` of its chain.

    Raises:
        InputError: an artifact is missing.
    """
    walk = store.get(Walk, question.walk)
    certificate = load_certificate(store, question)
    rejection = None if certificate else load_rejection(store, question.id, ExploreStep.GATE)
    rounds = [
        {name: row[name] for name in ("round", "name", "status", "reason", "best", "attempts", "solved", "mean_turns")}
        for row in list_questions(store, QuestionFilters(corpus=walk.corpus))
        if row["name"].rpartition(".")[0] == walk.name
    ]
    return {
        "id": question.id,
        **question.model_dump(mode="json"),
        "seed": walk.seed,
        "status": "certified" if certificate else "rejected" if rejection else "waiting",
        "reason": rejection.reason if rejection else None,
        "detail": rejection.detail if rejection else None,
        "facts": [fact.model_dump(mode="json") for fact in walk.facts],
        "certificate": None
        if certificate is None
        else {**certificate.model_dump(mode="json"), "path": json.loads(artifacts.get(certificate.path))},
        "rounds": rounds,
    }
