"""Steps beyond the released code, which profile `simia` does not have."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

from core.minhash import hash_feature
from simulators.conversation import DialogueTurn, TurnRole
from simulators.domains.validators import collect_ids
from simulators.post_processing.context import StepContext
from simulators.post_processing.draft import Draft, DroppedError, DropReason
from simulators.post_processing.grams import iterate_grams

NEXT_ROLES = {
    None: (TurnRole.HUMAN,),
    TurnRole.HUMAN: (TurnRole.ASSISTANT, TurnRole.FUNCTION_CALL),
    TurnRole.ASSISTANT: (TurnRole.HUMAN,),
    TurnRole.FUNCTION_CALL: (TurnRole.OBSERVATION,),
    TurnRole.OBSERVATION: (TurnRole.ASSISTANT, TurnRole.FUNCTION_CALL),
}
"""Role -> roles that may follow it; of None: that may begin."""
ERROR_BEGINNING = "error"
"""How the result of an injected failure begins, in any case of letters."""
SEQUENCE_WORDS = 3
MIN_SEQUENCES = 20
"""Conversations with fewer sequences of words are similar by chance."""
MIN_LETTERS = 40
"""Fewer letters do not show a script."""


def check_turn_order(draft: Draft, context: StepContext) -> Draft:
    """Drop a conversation whose roles do not take turns, or that the agent does not end."""
    del context
    if problem := find_order_problem(draft.turns):
        raise DroppedError(DropReason.TURN_ORDER, problem)
    return draft


def find_order_problem(turns: Iterable[DialogueTurn]) -> str:
    """Return the problem with the order of turns, empty where nothing is."""
    before: TurnRole | None = None
    number = 0
    for number, turn in enumerate(turns, 1):
        if turn.role not in NEXT_ROLES.get(before, ()):
            return f"turn {number} is {turn.role.value} after {before.value if before else 'nothing'}"
        before = turn.role
    if before not in (TurnRole.ASSISTANT, TurnRole.FUNCTION_CALL):
        return f"the last turn, {number}, is not the agent's"
    return ""


def check_turn_count(draft: Draft, context: StepContext) -> Draft:
    """Drop a conversation that is far shorter or longer than its seed and scenario make it."""
    expected = draft.job.seed.n_turns * draft.job.scenario.turn_factor
    tolerance = context.pack.format.turn_tolerance
    low, high = expected * (1 - tolerance), expected * (1 + tolerance)
    if not low <= len(draft.turns) <= high:
        raise DroppedError(DropReason.TURN_COUNT, f"{len(draft.turns)} turns, and {low:.0f} to {high:.0f} are expected")
    return draft


def check_language(draft: Draft, context: StepContext) -> Draft:
    """Drop a conversation in another script than its seed's; languages of a script are not distinguished."""
    del context
    wanted = find_script(draft.job.seed.conversation.body)
    script = find_script(draft.turns)
    if wanted and script and wanted != script:
        raise DroppedError(DropReason.LANGUAGE, f"{script} letters, and {wanted} ones in the seed")
    return draft


def find_script(turns: Iterable[DialogueTurn]) -> str:
    """Return the script of most letters that person and agent write, such as LATIN; empty where there are few."""
    letters = (
        letter
        for turn in turns
        if turn.role in (TurnRole.HUMAN, TurnRole.ASSISTANT)
        for letter in turn.text
        if letter.isalpha()
    )
    scripts = Counter(unicodedata.name(letter, "").partition(" ")[0] for letter in letters)
    return scripts.most_common(1)[0][0] if scripts.total() >= MIN_LETTERS else ""


def check_failure(draft: Draft, context: StepContext) -> Draft:
    """Drop a conversation that was to have a failing call and has none."""
    del context
    results = [turn.text for turn in draft.turns if turn.role is TurnRole.OBSERVATION]
    if draft.job.failure and not any(text.lstrip(' "{').lower().startswith(ERROR_BEGINNING) for text in results):
        raise DroppedError(DropReason.NO_FAILURE, f"no result begins with an error ({draft.job.failure.name})")
    return draft


def check_ids(draft: Draft, context: StepContext) -> Draft:
    """Drop a conversation with an id in a call that neither the person nor a tool gave before."""
    if not context.options.seen_ids:
        return draft
    known = [context.pack.policy.lower()]
    for number, turn in enumerate(draft.turns, 1):
        for call in turn.calls:
            for name, value in collect_ids(call, context.pack.id_arguments):
                if not is_known_id(value, known):
                    raise DroppedError(DropReason.UNSEEN_ID, f"turn {number}: {name} {value!r} of {call.name}")
        if turn.role in (TurnRole.HUMAN, TurnRole.OBSERVATION):
            known.append(turn.text.lower())
    return draft


def is_known_id(value: str, texts: Iterable[str]) -> bool:
    """Return whether an id stands in a text as a word; people leave out a leading `#`."""
    bare = re.escape(value.lower().lstrip("#"))
    pattern = re.compile(rf"(?<!\w){bare}(?!\w)")
    return any(pattern.search(text) for text in texts)


def check_benchmarks(draft: Draft, context: StepContext) -> Draft:
    """Drop a conversation that has eight words in a row of a benchmark's texts."""
    texts = [part for turn in draft.turns for part in (turn.text, turn.reasoning, *(c.render() for c in turn.calls))]
    if entry := context.benchmarks.find(texts):
        gram, place = entry
        raise DroppedError(DropReason.BENCHMARK, f"{gram!r} of {place}")
    return draft


def drop_near_duplicate(draft: Draft, context: StepContext) -> Draft:
    """Drop a conversation that is too similar to one that passed; the last step, so that only those count."""
    if context.options.near_duplicates >= 1:
        return draft
    texts = [part for turn in draft.turns for part in (turn.text, *(call.render() for call in turn.calls))]
    sequences = (gram for text in texts for gram in iterate_grams(text, SEQUENCE_WORDS))
    features = frozenset(map(hash_feature, sequences))
    if len(features) < MIN_SEQUENCES:
        return draft
    if similar := context.seen.find_or_add(draft.job.name, features, context.options.near_duplicates):
        name, similarity = similar
        raise DroppedError(DropReason.NEAR_DUPLICATE, f"a similarity of {similarity:.2f} to {name}")
    return draft
