"""Checks of the final state."""

from typing import Any

State = dict[str, Any]


def has_filled_s11(final_state: State) -> bool:
    """Has assigned D1 to S11, as well as D4."""
    return sorted(final_state["shifts"]["S11"]["doctor_ids"]) == ["D1", "D4"]


def has_published_s11(final_state: State) -> bool:
    """Has published S11."""
    status: str = final_state["shifts"]["S11"]["status"]
    return status == "published"


def has_added_skill(final_state: State) -> bool:
    """Has added paediatrics to D5."""
    skills: list[str] = final_state["doctors"]["D5"]["skills"]
    return skills == ["paediatrics"]


def has_published_s13(final_state: State) -> bool:
    """Has assigned D5 to S13 and published it."""
    shift: dict[str, Any] = final_state["shifts"]["S13"]
    return (shift["doctor_ids"], shift["status"]) == (["D5"], "published")


def has_approved_v22(final_state: State) -> bool:
    """Has approved V22."""
    status: str = final_state["leaves"]["V22"]["status"]
    return status == "approved"


def has_rejected_v23(final_state: State) -> bool:
    """Has rejected V23."""
    status: str = final_state["leaves"]["V23"]["status"]
    return status == "rejected"


def has_added_note(final_state: State) -> bool:
    """Has added the note of D1 to S11, once."""
    notes: list[dict[str, str]] = final_state["notes"].get("S11", [])
    return notes == [{"doctor_id": "D1", "text": "Bring the new monitors."}]


def has_kept_the_night(initial_state: State, final_state: State) -> bool:
    """Has not touched the night shift S12."""
    shift: dict[str, Any] = final_state["shifts"]["S12"]
    is_kept: bool = shift == initial_state["shifts"]["S12"]
    return is_kept
