"""Checks of the final state."""

from typing import Any

State = dict[str, Any]


def _find_book(state: State) -> dict[str, Any]:
    books = [book for book in state["books"].values() if book["title"] == "Clouds at Noon"]
    return books[0] if len(books) == 1 else {}


def _find_teacher(state: State) -> dict[str, Any]:
    members = [member for member in state["members"].values() if member["email"] == "lena@example.org"]
    return members[0] if len(members) == 1 else {}


def _has_open_loan(state: State, book_id: str | None, member_id: str | None) -> bool:
    found = [
        loan
        for loan in state["loans"].values()
        if (loan["book_id"], loan["member_id"], loan["returned_on"]) == (book_id, member_id, None)
    ]
    return len(found) == 1


def has_added_book(final_state: State) -> bool:
    """Has added Clouds at Noon with author, genre and 3 copies."""
    book = _find_book(final_state)
    return (book.get("author"), book.get("genre"), book.get("copies")) == ("Ravi Menon", "science", 3)


def has_registered_teacher(final_state: State) -> bool:
    """Has registered Lena Fuchs with a loan limit of 2."""
    member = _find_teacher(final_state)
    return (member.get("name"), member.get("loan_limit")) == ("Lena Fuchs", 2)


def has_lent_new_book(final_state: State) -> bool:
    """Has lent the new book to Lena Fuchs."""
    return _has_open_loan(
        final_state, _find_book(final_state).get("book_id"), _find_teacher(final_state).get("member_id")
    )


def has_taken_back_whales(final_state: State) -> bool:
    """Has ended Hana's loan of Counting Whales."""
    day: str | None = final_state["loans"]["L-121"]["returned_on"]
    return day == "2025-10-17"


def has_lent_whales(final_state: State) -> bool:
    """Has lent Counting Whales to Goran Ilic, whose hold is filled."""
    status: str = final_state["holds"]["H-130"]["status"]
    return _has_open_loan(final_state, "B-112", "M-102") and status == "filled"


def has_cancelled_hold(final_state: State) -> bool:
    """Has cancelled Farah's hold."""
    status: str = final_state["holds"]["H-131"]["status"]
    return status == "cancelled"


def has_renewed(final_state: State) -> bool:
    """Has renewed Farah's loan once."""
    loan: dict[str, Any] = final_state["loans"]["L-120"]
    return (loan["due_date"], loan["renewals"], loan["returned_on"]) == ("2025-11-21", 2, None)
