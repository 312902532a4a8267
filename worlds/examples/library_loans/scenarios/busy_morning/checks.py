"""Checks of the final state."""

from typing import Any

State = dict[str, Any]


def has_paid_part(final_state: State) -> bool:
    """Has recorded Bruno's payment of 300 cents."""
    fine: int = final_state["members"]["M-2"]["fine_cents"]
    return fine == 950


def has_activated(final_state: State) -> bool:
    """Has made Bruno's account active."""
    status: str = final_state["members"]["M-2"]["status"]
    return status == "active"


def has_lent_the_fox(final_state: State) -> bool:
    """Has lent The Fox Who Counted to Bruno, once."""
    loans = [
        loan
        for loan in final_state["loans"].values()
        if (loan["book_id"], loan["member_id"], loan["returned_on"]) == ("B-14", "M-2", None)
    ]
    is_lent: bool = len(loans) == 1 and loans[0]["due_date"] == "2025-03-24" and loans[0]["renewals"] == 0
    return is_lent


def has_taken_back_the_maps(final_state: State) -> bool:
    """Has ended Chloe's loan of A Short History of Maps."""
    loan: dict[str, Any] = final_state["loans"]["L-22"]
    is_ended: bool = loan["returned_on"] == "2025-03-03"
    return is_ended and bool(loan["due_date"] == "2025-02-27")


def has_settled(final_state: State) -> bool:
    """Has recorded Chloe's payment of everything she owes."""
    fine: int = final_state["members"]["M-3"]["fine_cents"]
    return fine == 0


def has_placed_hold(final_state: State) -> bool:
    """Has put Chloe into the queue for Tides and Moons, once."""
    holds = [
        hold
        for hold in final_state["holds"].values()
        if (hold["book_id"], hold["member_id"], hold["status"]) == ("B-13", "M-3", "waiting")
    ]
    return len(holds) == 1


def has_left_others_alone(initial_state: State, final_state: State) -> bool:
    """Has changed nothing about the other members and their loans."""
    members = [final_state["members"][one] == initial_state["members"][one] for one in ("M-1", "M-4")]
    loans = [final_state["loans"][one] == initial_state["loans"][one] for one in ("L-21", "L-23", "L-24")]
    return all(members + loans)
