"""A lending library: members, books, loans, holds and fines."""

import datetime as dt
from typing import Any, ClassVar, Literal, TypedDict

LOAN_DAYS = 21
MAX_RENEWALS = 2
FINE_CENTS_PER_DAY = 25
MAX_FINE_CENTS = 1000

Genre = Literal["fiction", "history", "science", "children"]


class Member(TypedDict):
    """A person who may borrow books. A suspended member may return them only."""

    member_id: str
    name: str
    email: str
    status: Literal["active", "suspended"]
    loan_limit: int
    fine_cents: int


class Book(TypedDict):
    """A title, of which the library owns `copies`; `available` of them are neither lent nor set aside."""

    book_id: str
    title: str
    author: str
    genre: Genre
    copies: int
    available: int


class Loan(TypedDict):
    """A copy lent to a member. `returned_on` is null while it is out."""

    loan_id: str
    book_id: str
    member_id: str
    due_date: str
    renewals: int
    returned_on: str | None


class Hold(TypedDict):
    """A place in the queue for a title; a ready hold has a copy set aside."""

    hold_id: str
    book_id: str
    member_id: str
    status: Literal["waiting", "ready", "filled", "cancelled"]


class Library:
    """State and tools of the library. Dates are ISO 8601; money is in cents."""

    FOREIGN_KEYS: ClassVar[dict[str, str]] = {
        "loans.book_id": "books",
        "loans.member_id": "members",
        "holds.book_id": "books",
        "holds.member_id": "members",
    }

    def __init__(self, state: dict[str, Any]) -> None:
        self.today: str = state["today"]
        self.next_number: int = state["next_number"]
        self.members: dict[str, Member] = state["members"]
        self.books: dict[str, Book] = state["books"]
        self.loans: dict[str, Loan] = state["loans"]
        self.holds: dict[str, Hold] = state["holds"]

    # Queries

    def search_books(self, text: str, genre: Genre | None = None) -> dict[str, Any]:
        """Find books whose title or author contains a text, in any case.

        Args:
            text: Part of a title or of an author's name.
            genre: Only books of this genre.
        """
        wanted = text.casefold()
        found = [
            book
            for book in self.books.values()
            if wanted in f"{book['title']}\n{book['author']}".casefold() and genre in (None, book["genre"])
        ]
        return {"success": True, "data": sorted(found, key=lambda book: book["book_id"])}

    def get_book(self, book_id: str) -> dict[str, Any]:
        """Show a book.

        Args:
            book_id: Id of the book.
        """
        if book_id not in self.books:
            return self._fail(f"there is no book {book_id}")
        return {"success": True, "data": self.books[book_id]}

    def get_member(self, member_id: str) -> dict[str, Any]:
        """Show a member, with the number of books on loan.

        Args:
            member_id: Id of the member.
        """
        member = self.members.get(member_id)
        if member is None:
            return self._fail(f"there is no member {member_id}")
        return {"success": True, "data": {**member, "open_loans": self._count_open_loans(member_id)}}

    def list_loans(self, member_id: str, include_returned: bool = False) -> dict[str, Any]:
        """List the loans of a member.

        Args:
            member_id: Id of the member.
            include_returned: Whether loans that have ended are listed, too.
        """
        if member_id not in self.members:
            return self._fail(f"there is no member {member_id}")
        found = [
            loan
            for loan in self.loans.values()
            if loan["member_id"] == member_id and (include_returned or loan["returned_on"] is None)
        ]
        return {"success": True, "data": found}

    def list_overdue_loans(self) -> dict[str, Any]:
        """List the loans that are out beyond their due date."""
        found = [loan for loan in self.loans.values() if loan["returned_on"] is None and loan["due_date"] < self.today]
        return {"success": True, "data": found}

    def list_holds(self, book_id: str) -> dict[str, Any]:
        """List the waiting and ready holds of a book, first come, first served.

        Args:
            book_id: Id of the book.
        """
        if book_id not in self.books:
            return self._fail(f"there is no book {book_id}")
        return {"success": True, "data": self._find_open_holds(book_id)}

    # Changes

    def add_book(self, title: str, author: str, genre: Genre, copies: int = 1) -> dict[str, Any]:
        """Add a book to the catalogue.

        Args:
            title: Title.
            author: Author.
            genre: Genre.
            copies: Number of copies, 1 to 50.
        """
        if not title.strip() or not author.strip():
            return self._fail("title and author must not be empty")
        if not 1 <= copies <= 50:
            return self._fail("copies must be between 1 and 50")
        book_id = self._make_id("B")
        self.books[book_id] = {
            "book_id": book_id,
            "title": title,
            "author": author,
            "genre": genre,
            "copies": copies,
            "available": copies,
        }
        return {"success": True, "message": f"book {book_id} was added", "book_id": book_id}

    def register_member(self, name: str, email: str, loan_limit: int = 5) -> dict[str, Any]:
        """Register a member. No two members have the same email address.

        Args:
            name: Full name.
            email: Email address.
            loan_limit: Number of books the member may have at a time, 1 to 20.
        """
        if not name.strip() or "@" not in email:
            return self._fail("a member needs a name and an email address")
        if not 1 <= loan_limit <= 20:
            return self._fail("loan_limit must be between 1 and 20")
        if any(member["email"] == email for member in self.members.values()):
            return self._fail(f"{email} belongs to another member")
        member_id = self._make_id("M")
        self.members[member_id] = {
            "member_id": member_id,
            "name": name,
            "email": email,
            "status": "active",
            "loan_limit": loan_limit,
            "fine_cents": 0,
        }
        return {"success": True, "message": f"member {member_id} was registered", "member_id": member_id}

    def set_member_status(self, member_id: str, status: Literal["active", "suspended"]) -> dict[str, Any]:
        """Suspend a member, or make a suspended member active again.

        Args:
            member_id: Id of the member.
            status: New status; it must differ from the present one.
        """
        member = self.members.get(member_id)
        if member is None:
            return self._fail(f"there is no member {member_id}")
        if member["status"] == status:
            return self._fail(f"member {member_id} is {status} already")
        member["status"] = status
        return {"success": True, "message": f"member {member_id} is {status}"}

    def change_email(self, member_id: str, email: str) -> dict[str, Any]:
        """Change the email address of a member.

        Args:
            member_id: Id of the member.
            email: New address, which no other member has.
        """
        if member_id not in self.members:
            return self._fail(f"there is no member {member_id}")
        if "@" not in email or any(member["email"] == email for member in self.members.values()):
            return self._fail(f"{email!r} is no address, or belongs to a member already")
        self.members[member_id]["email"] = email
        return {"success": True, "message": f"the address of {member_id} is {email}"}

    def check_out(self, book_id: str, member_id: str) -> dict[str, Any]:
        """Lend a copy to an active member for 21 days.

        The member must be below the loan limit, owe no more than 1000 cents and not have the book already. A copy must
        be available, or set aside for this member by a ready hold, which is then filled.

        Args:
            book_id: Id of the book.
            member_id: Id of the member.
        """
        if error := self._find_obstacle(book_id, member_id):
            return self._fail(error)
        ready = [
            hold
            for hold in self.holds.values()
            if (hold["book_id"], hold["member_id"], hold["status"]) == (book_id, member_id, "ready")
        ]
        if ready:
            ready[0]["status"] = "filled"
        elif self.books[book_id]["available"] > 0:
            self.books[book_id]["available"] -= 1
        else:
            return self._fail(f"no copy of {book_id} is available")
        loan_id = self._make_id("L")
        self.loans[loan_id] = {
            "loan_id": loan_id,
            "book_id": book_id,
            "member_id": member_id,
            "due_date": self._add_days(self.today, LOAN_DAYS),
            "renewals": 0,
            "returned_on": None,
        }
        return {"success": True, "message": f"{book_id} is lent to {member_id}", "loan_id": loan_id}

    def return_book(self, loan_id: str) -> dict[str, Any]:
        """Take a book back. Each day beyond the due date costs the member 25 cents.

        The copy is set aside for the first waiting hold, which becomes ready; without one it becomes available.

        Args:
            loan_id: Id of the loan.
        """
        loan = self.loans.get(loan_id)
        if loan is None or loan["returned_on"] is not None:
            return self._fail(f"there is no open loan {loan_id}")
        loan["returned_on"] = self.today
        days = self._count_days(loan["due_date"], self.today)
        self.members[loan["member_id"]]["fine_cents"] += max(0, days) * FINE_CENTS_PER_DAY
        self._release_copy(loan["book_id"])
        return {"success": True, "message": f"loan {loan_id} has ended", "days_late": max(0, days)}

    def renew_loan(self, loan_id: str) -> dict[str, Any]:
        """Lend a book for another 21 days from its due date, at most twice.

        It must not be overdue, and nobody may be waiting for the book.

        Args:
            loan_id: Id of the loan.
        """
        loan = self.loans.get(loan_id)
        if loan is None or loan["returned_on"] is not None:
            return self._fail(f"there is no open loan {loan_id}")
        if loan["renewals"] >= MAX_RENEWALS:
            return self._fail(f"loan {loan_id} was renewed {MAX_RENEWALS} times already")
        if loan["due_date"] < self.today:
            return self._fail(f"loan {loan_id} is overdue")
        if any(hold["status"] == "waiting" for hold in self._find_open_holds(loan["book_id"])):
            return self._fail(f"somebody is waiting for {loan['book_id']}")
        loan["due_date"] = self._add_days(loan["due_date"], LOAN_DAYS)
        loan["renewals"] += 1
        return {"success": True, "message": f"loan {loan_id} is due on {loan['due_date']}"}

    def place_hold(self, book_id: str, member_id: str) -> dict[str, Any]:
        """Put an active member into the queue for a book of which no copy is available.

        Args:
            book_id: Id of the book.
            member_id: Id of the member, who has neither the book nor an open hold for it.
        """
        book, member = self.books.get(book_id), self.members.get(member_id)
        if book is None or member is None:
            return self._fail("there is no such book or member")
        if member["status"] != "active":
            return self._fail(f"member {member_id} is suspended")
        if book["available"] > 0:
            return self._fail(f"a copy of {book_id} is available")
        if self._has_book(book_id, member_id) or any(
            hold["member_id"] == member_id for hold in self._find_open_holds(book_id)
        ):
            return self._fail(f"member {member_id} has the book or a hold for it")
        hold_id = self._make_id("H")
        self.holds[hold_id] = {"hold_id": hold_id, "book_id": book_id, "member_id": member_id, "status": "waiting"}
        return {"success": True, "message": f"hold {hold_id} was placed", "hold_id": hold_id}

    def cancel_hold(self, hold_id: str) -> dict[str, Any]:
        """Cancel a waiting or ready hold. A copy that was set aside goes to the next in the queue.

        Args:
            hold_id: Id of the hold.
        """
        hold = self.holds.get(hold_id)
        if hold is None or hold["status"] not in ("waiting", "ready"):
            return self._fail(f"there is no open hold {hold_id}")
        was_ready = hold["status"] == "ready"
        hold["status"] = "cancelled"
        if was_ready:
            self._release_copy(hold["book_id"])
        return {"success": True, "message": f"hold {hold_id} is cancelled"}

    def pay_fine(self, member_id: str, cents: int) -> dict[str, Any]:
        """Record a payment.

        Args:
            member_id: Id of the member.
            cents: Amount, more than 0 and not more than what is owed.
        """
        member = self.members.get(member_id)
        if member is None:
            return self._fail(f"there is no member {member_id}")
        if not 0 < cents <= member["fine_cents"]:
            return self._fail(f"member {member_id} owes {member['fine_cents']} cents")
        member["fine_cents"] -= cents
        return {"success": True, "message": f"member {member_id} owes {member['fine_cents']} cents"}

    # Helpers

    def _find_obstacle(self, book_id: str, member_id: str) -> str | None:
        """Return why a member may not borrow a book, apart from missing copies."""
        member = self.members.get(member_id)
        if member is None or book_id not in self.books:
            return "there is no such book or member"
        if member["status"] != "active":
            return f"member {member_id} is suspended"
        if member["fine_cents"] > MAX_FINE_CENTS:
            return f"member {member_id} owes {member['fine_cents']} cents"
        if self._count_open_loans(member_id) >= member["loan_limit"]:
            return f"member {member_id} has {member['loan_limit']} books already"
        return f"member {member_id} has {book_id} already" if self._has_book(book_id, member_id) else None

    def _find_open_holds(self, book_id: str) -> list[Hold]:
        """Return the waiting and ready holds of a book in the order they were placed."""
        found = [hold for hold in self.holds.values() if hold["book_id"] == book_id]
        return sorted((hold for hold in found if hold["status"] in ("waiting", "ready")), key=self._get_hold_number)

    def _release_copy(self, book_id: str) -> None:
        """Set a copy aside for the first waiting hold, or make it available."""
        waiting = [hold for hold in self._find_open_holds(book_id) if hold["status"] == "waiting"]
        if waiting:
            waiting[0]["status"] = "ready"
        else:
            self.books[book_id]["available"] += 1

    def _has_book(self, book_id: str, member_id: str) -> bool:
        return any(
            (loan["book_id"], loan["member_id"], loan["returned_on"]) == (book_id, member_id, None)
            for loan in self.loans.values()
        )

    def _count_open_loans(self, member_id: str) -> int:
        return sum(loan["member_id"] == member_id and loan["returned_on"] is None for loan in self.loans.values())

    def _make_id(self, letter: str) -> str:
        number = self.next_number
        self.next_number += 1
        return f"{letter}-{number}"

    @staticmethod
    def _get_hold_number(hold: Hold) -> int:
        return int(hold["hold_id"].partition("-")[2])

    @staticmethod
    def _add_days(date: str, days: int) -> str:
        return (dt.date.fromisoformat(date) + dt.timedelta(days=days)).isoformat()

    @staticmethod
    def _count_days(first: str, last: str) -> int:
        return (dt.date.fromisoformat(last) - dt.date.fromisoformat(first)).days

    @staticmethod
    def _fail(error: str) -> dict[str, Any]:
        return {"success": False, "error": error}
