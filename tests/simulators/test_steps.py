"""Steps of profile `default`, one by one: three conversations or more for each rule, kept, repaired and dropped."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from simulators.conversation import Dialogue, DialogueTurn, FunctionCall, TurnRole, render_blocks
from simulators.domains.pack import DomainPack, PackFormat, load_pack
from simulators.jobs import SimulationJob
from simulators.options import PROFILES, SimulationOptions
from simulators.post_processing.context import StepContext
from simulators.post_processing.draft import Draft, DroppedConversation
from simulators.post_processing.further_checks import find_script
from simulators.post_processing.grams import GramIndex
from simulators.post_processing.steps import STEPS, PostProcessing, choose_steps
from simulators.scenarios import FAILURES, ToolFailure
from simulators.seeds.seed import Seed

OPTIONS = PROFILES["default"]
RETAIL = load_pack("retail")
SHORT = replace(RETAIL, format=PackFormat(turn_tolerance=10))
"""Retail with conversations of any length."""
SEED = Seed(
    conversation=Dialogue(
        turns=(
            DialogueTurn(role=TurnRole.HUMAN, text="Please show the order W4219087 that I made last week."),
            DialogueTurn(role=TurnRole.ASSISTANT, text="It is pending, and it will be delivered next Monday or so."),
        )
    ),
    file="seeds.json",
    line=1,
    format="sharegpt",
)


def process(
    *answers: str,
    pack: DomainPack = SHORT,
    options: SimulationOptions = OPTIONS,
    failure: ToolFailure | None = None,
    seed: Seed = SEED,
    finish: str = "stop",
) -> tuple[list[Draft | DroppedConversation], PostProcessing]:
    processing = PostProcessing(StepContext(pack=pack, options=options, benchmarks=GramIndex()))
    drafts = [
        Draft(
            job=SimulationJob(seed=seed, sample=number, failure=failure),
            key=str(number),
            answer=answer,
            finish_reason=finish,
        )
        for number, answer in enumerate(answers, 1)
    ]
    return list(processing.process(drafts)), processing


def process_one(answer: str, **more: Any) -> Draft | DroppedConversation:
    return process(answer, **more)[0][0]


def keep(answer: str, **more: Any) -> Draft:
    outcome = process_one(answer, **more)
    assert isinstance(outcome, Draft), outcome
    return outcome


def find_reason(answer: str, **more: Any) -> str:
    outcome = process_one(answer, **more)
    assert isinstance(outcome, DroppedConversation), outcome
    return outcome.reason.value


def ask(
    call: str, *, human: str = "Please show order W7.", result: str = "pending", end: str = "It is pending."
) -> str:
    return f"HUMAN: {human}\nFUNCTION_CALL: {call}\nOBSERVATION: {result}\nASSISTANT: {end}"


def show(order: str = "#W7") -> str:
    return json.dumps({"name": "get_order_details", "arguments": {"order_id": order}})


def test_layout_within_a_turn_is_kept() -> None:
    draft = keep("Sure:\nHUMAN: Run this:\n\n    if x:\n        y()\n\nASSISTANT: Done.\n  A: is no marker here.\n")
    assert [turn.text for turn in draft.turns] == [
        "Run this:\n\n    if x:\n        y()",
        "Done.\n  A: is no marker here.",
    ]


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (show(), {"order_id": "#W7"}),
        (show("W7"), {"order_id": "#W7"}),
        ("{'name': 'get_order_details', 'arguments': {'order_id': '#W7'}}", {"order_id": "#W7"}),
        ('{"name": "get_order_details", "arguments": {"order_id": "#W7"', {"order_id": "#W7"}),
        ('{"name": "get_order_details", "arguments": "{\\"order_id\\": \\"#W7\\"}"}', {"order_id": "#W7"}),
        ('{"name": "get_order_details", "arguments": {"order_id": "#W7",}}', {"order_id": "#W7"}),
    ],
)
def test_a_call_is_kept_or_repaired(call: str, arguments: dict[str, Any]) -> None:
    draft = keep(ask(call))
    assert draft.turns[1].calls == (FunctionCall(name="get_order_details", arguments=arguments),)
    is_well = call == show()
    assert (draft.repairs == ()) == is_well
    if not is_well:
        assert draft.repairs[0].raw == call


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ('{"name": "list_all_product_types"}', "arguments"),
        ('{"name": "list_all_product_types", "arguments": null}', "arguments"),
        ('{"name": "list_all_product_types", "arguments": ""}', "arguments"),
        ('{"name": "list_all_product_types", "arguments": []}', "arguments"),
        ('{"name": "list_all_product_types", "arguments": "all"}', "arguments"),
        ("get_order_details(W7)", "call"),
        ('I look. {"name": "get_order_details"}', "call"),
        ('{"arguments": {}}', "call"),
        ('{"name": "think", "arguments": {"thought": "x"}}', "think-called"),
        ('{"name": "track", "arguments": {}}', "unknown-tool"),
        ('{"name": "get_order_details", "arguments": {}}', "argument-missing"),
        ('{"name": "get_order_details", "arguments": {"order_id": "#W7", "fast": true}}', "argument-unknown"),
        ('{"name": "get_order_details", "arguments": {"order_id": 7}}', "argument-type"),
        ('{"name": "cancel_pending_order", "arguments": {"order_id": "#W7", "reason": "bored"}}', "argument-type"),
        ('{"name": "find_user_id_by_email", "arguments": {"email": "mei"}}', "argument-format"),
    ],
)
def test_a_call_that_would_have_to_be_invented_is_dropped(call: str, reason: str) -> None:
    assert find_reason(ask(call)) == reason


def test_several_calls_are_dropped_unless_the_pack_permits_them() -> None:
    both = f"[{show()}, {show('#W8')}]"
    human = "Please show W7 and W8."
    assert find_reason(ask(both, human=human)) == "several-calls"
    assert find_reason(ask(f"<think>x</think>\n{both}", human=human)) == "several-calls"
    assert find_reason("HUMAN: a\nASSISTANT: <tool_call>{}</tool_call>") == "several-calls"
    parallel = replace(SHORT, format=PackFormat(turn_tolerance=10, parallel_calls=True))
    assert len(keep(ask(both, human=human), pack=parallel).turns[1].calls) == 2
    assert len(keep(ask(f"<think>x</think>\n{both}", human=human), pack=parallel).turns[1].calls) == 2
    assert find_reason("HUMAN: a\nASSISTANT: <tool_call>{}</tool_call>", pack=parallel) == "several-calls"


def test_payment_methods_are_rewritten_beyond_the_released_code() -> None:
    def pay(method: str) -> str:
        call = {
            "name": "modify_pending_order_payment",
            "arguments": {"order_id": "#W7", "payment_method_id": method},
        }
        return ask(json.dumps(call), human="Pay W7 by credit_card_44 or gift_card_9 or paypal_3.")

    for written, wanted in (
        ("credit_card_44", "credit_card_44"),
        ("cc_44", "credit_card_44"),
        ("creditcard_44", "credit_card_44"),
        ("giftcard_9", "gift_card_9"),
        ("paypal_3", "paypal_3"),
    ):
        assert keep(pay(written)).turns[1].calls[0].arguments["payment_method_id"] == wanted
    assert find_reason(pay("cash")) == "argument-format"


def test_patterns_hold_in_nested_arguments() -> None:
    airline = replace(load_pack("airline"), format=PackFormat(turn_tolerance=10))

    def move(date: str) -> str:
        flights = [{"flight_number": "HAT214", "date": date}]
        arguments = {"reservation_id": "8JX2WO", "cabin": "economy", "flights": flights, "payment_id": "gift_card_1"}
        call = json.dumps({"name": "update_reservation_flights", "arguments": arguments})
        return ask(call, human="Move 8JX2WO to HAT214, and pay by gift_card_1.")

    assert keep(move("2024-05-20"), pack=airline)
    assert find_reason(move("May 20"), pack=airline) == "argument-format"


def test_reasoning_is_kept_apart_or_shown() -> None:
    answer = ask(
        f"<think>\nI look.\n</think>\n{show()}", human="<think>x</think>Please show W7.", end="<think>y</think>Pending."
    )
    draft = keep(answer)
    assert [(turn.text, turn.reasoning) for turn in draft.turns] == [
        ("Please show W7.", ""),
        ("", "I look."),
        ("pending", ""),
        ("Pending.", "y"),
    ]
    shown = keep(answer, options=replace(OPTIONS, think="text"))
    assert [turn.text for turn in shown.turns] == ["Please show W7.", "I look.", "pending", "y\n\nPending."]
    assert find_reason(ask(show(), end="It is</think> pending.")) == "think"
    never = replace(SHORT, format=PackFormat(turn_tolerance=10, think="never"))
    assert find_reason(answer, pack=never) == "think"
    assert keep(ask(show()), pack=never)


TWICE = f"FUNCTION_CALL: {show()}\nOBSERVATION: b"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ask(show()), ""),
        (f"HUMAN: W7\nFUNCTION_CALL: {show()}\nOBSERVATION: a\n{TWICE}\nASSISTANT: c", ""),
        (f"HUMAN: W7\nFUNCTION_CALL: {show()}", ""),
        ("ASSISTANT: Hello.\nHUMAN: Hi.\nASSISTANT: What?", "turn-order"),
        (f"HUMAN: W7\nASSISTANT: I look.\nFUNCTION_CALL: {show()}\nOBSERVATION: a\nASSISTANT: b", "turn-order"),
        ("HUMAN: a\nHUMAN: b\nASSISTANT: c", "turn-order"),
        ("HUMAN: a\nOBSERVATION: b\nASSISTANT: c", "turn-order"),
        ("HUMAN: a\nASSISTANT: b\nHUMAN: Thank you.", "turn-order"),
    ],
)
def test_roles_take_turns(answer: str, reason: str) -> None:
    outcome = process_one(answer)
    assert (outcome.reason.value if isinstance(outcome, DroppedConversation) else "") == reason


def test_the_number_of_turns_is_about_the_seeds() -> None:
    four = ask(show())
    assert find_reason(four, pack=RETAIL) == "turn-count"  # the seed has two, and 0.6 of them more are allowed
    longer = replace(SEED, conversation=Dialogue(turns=SEED.conversation.turns * 2))
    assert keep(four, pack=RETAIL, seed=longer)
    longest = replace(SEED, conversation=Dialogue(turns=SEED.conversation.turns * 6))
    assert find_reason(four, pack=RETAIL, seed=longest) == "turn-count"


def test_scripts_are_compared_and_few_letters_are_not() -> None:
    russian = "Пожалуйста, покажите мой заказ, который я сделала на прошлой неделе."
    assert find_reason(ask(show(), human=f"{russian} W7", end=russian)) == "language"
    assert keep(ask(show(), human="Bitte zeigen Sie mir W7.", end="Die Bestellung wartet noch auf den Versand."))
    assert keep(ask(show(), human="Да, W7", end="Да."))
    assert find_script((DialogueTurn(role=TurnRole.HUMAN, text=russian),)) == "CYRILLIC"


def test_an_injected_failure_must_happen() -> None:
    failure = FAILURES[0]
    assert keep(ask(show(), result="Error: the service did not answer", end="I cannot look now."), failure=failure)
    assert keep(ask(show(), result='{"error": "timeout"}', end="I cannot look now."), failure=failure)
    assert find_reason(ask(show()), failure=failure) == "no-failure"
    assert keep(ask(show()))


@pytest.mark.parametrize(
    ("human", "order", "reason"),
    [
        ("Show #W7.", "#W7", ""),
        ("Show w7, please.", "#W7", ""),
        ("Show it.", "#W7", "unseen-id"),
        ("Show #W77.", "#W7", "unseen-id"),
    ],
)
def test_an_id_was_given_before(human: str, order: str, reason: str) -> None:
    outcome = process_one(ask(show(order), human=human))
    assert (outcome.reason.value if isinstance(outcome, DroppedConversation) else "") == reason
    assert keep(ask(show(order), human=human), options=replace(OPTIONS, seen_ids=False))


def test_an_id_that_only_the_agent_named_or_a_later_result_gives_is_unseen() -> None:
    named = (
        f"HUMAN: Show it.\nASSISTANT: Is it W7?\nHUMAN: Yes.\nFUNCTION_CALL: {show()}\nOBSERVATION: W7\nASSISTANT: x"
    )
    assert find_reason(named) == "unseen-id"


def test_exact_and_near_duplicates() -> None:
    long = " ".join(f"word{number}" for number in range(60))
    other = long.replace("word3 ", "word three ")
    different = " ".join(f"thing{number}" for number in range(60))
    answers = [ask(show(), human=f"{text} W7", end=text + end) for text, end in ((long, ""), (long, ""), (other, "."))]
    outcomes, processing = process(*answers, ask(show(), human=f"{different} W7", end=different))
    kinds = [outcome.reason.value if isinstance(outcome, DroppedConversation) else "kept" for outcome in outcomes]
    assert kinds == ["kept", "duplicate", "near-duplicate", "kept"]
    assert isinstance(outcomes[2], DroppedConversation)
    assert outcomes[2].detail.endswith(f"to {SEED.id}-1")
    assert processing.dropped == {"duplicate": 1, "near-duplicate": 1}
    tolerant, _ = process(*answers, options=replace(OPTIONS, near_duplicates=1.0))
    assert [isinstance(outcome, Draft) for outcome in tolerant] == [True, False, True]


def test_the_same_texts_of_other_speakers_are_no_duplicate() -> None:
    outcomes, _ = process("HUMAN: a\nASSISTANT: b", "HUMAN: a\nHUMAN: b", options=PROFILES["simia"])
    assert [isinstance(outcome, Draft) for outcome in outcomes] == [True, True]


def test_a_cut_answer_is_dropped_though_it_could_be_parsed() -> None:
    assert find_reason(ask(show()), finish="length") == "truncated"
    assert keep(ask(show()), finish="length", options=PROFILES["simia"])


def test_a_step_without_a_switch_runs_in_simia_where_its_setting_is_on() -> None:
    released = [step.name for step in STEPS if step.is_released]
    assert [step.name for step in choose_steps(PROFILES["simia"])] == released
    with_ids = choose_steps(replace(PROFILES["simia"], seen_ids=True))
    assert [step.name for step in with_ids] == [*released, "ids"]
    default = [step.name for step in choose_steps(OPTIONS)]
    assert default == [step.name for step in STEPS if step.name != "benchmarks"]


def test_what_is_rendered_is_parsed_again() -> None:
    answer = ask(f"<think>\nI look.\n</think>\n{show()}", end="Line one.\n\n  Line two.")
    draft = keep(answer)
    again = keep(render_blocks(draft.turns))
    assert again.turns == draft.turns
