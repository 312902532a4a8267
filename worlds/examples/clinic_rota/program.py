"""A clinic's rota: doctors, wards, shifts and leave."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Literal, TypedDict

MAX_SHIFTS_PER_DOCTOR = 5
DATE = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")

Period = Literal["day", "evening", "night"]


class Doctor(TypedDict):
    """A doctor. `skills` are what a shift may require."""

    doctor_id: str
    name: str
    grade: Literal["junior", "senior"]
    skills: list[str]
    phone: str | None


class Ward(TypedDict):
    """A ward. `min_seniors` of the doctors of each published shift are senior."""

    ward_id: str
    name: str
    min_seniors: int


class Shift(TypedDict):
    """A period of one day on a ward, for which so many doctors are needed."""

    shift_id: str
    ward_id: str
    date: str
    period: Period
    needed: int
    required_skill: str | None
    doctor_ids: list[str]
    status: Literal["draft", "published", "cancelled"]


class Leave(TypedDict):
    """Days off that a doctor applied for, first and last day included."""

    leave_id: str
    doctor_id: str
    first_day: str
    last_day: str
    status: Literal["requested", "approved", "rejected"]


class ClinicRota:
    """State and tools of the rota."""

    FOREIGN_KEYS: ClassVar[dict[str, str]] = {
        "shifts.ward_id": "wards",
        "shifts.doctor_ids[]": "doctors",
        "leaves.doctor_id": "doctors",
        "notes.doctor_id": "doctors",
    }

    def __init__(self, state: dict[str, Any]) -> None:
        self.counters: dict[str, int] = state["counters"]
        self.doctors: dict[str, Doctor] = state["doctors"]
        self.wards: dict[str, Ward] = state["wards"]
        self.shifts: dict[str, Shift] = state["shifts"]
        self.leaves: dict[str, Leave] = state["leaves"]
        self.notes: dict[str, list[dict[str, str]]] = state["notes"]

    # Queries

    def find_doctors(
        self, skill: str | None = None, grade: Literal["junior", "senior"] | None = None
    ) -> dict[str, Any]:
        """List doctors, all or those with a skill or a grade.

        Args:
            skill: Only doctors with this skill.
            grade: Only doctors of this grade.
        """
        found = [
            doctor
            for doctor in self.doctors.values()
            if (skill is None or skill in doctor["skills"]) and grade in (None, doctor["grade"])
        ]
        return {"success": True, "data": found}

    def get_schedule(self, doctor_id: str) -> dict[str, Any]:
        """Show a doctor's shifts that are not cancelled, by date, and their leave.

        Args:
            doctor_id: Id of the doctor.
        """
        if doctor_id not in self.doctors:
            return {"success": False, "error": f"there is no doctor {doctor_id}"}
        shifts = sorted(self._find_shifts_of(doctor_id), key=lambda shift: (shift["date"], shift["shift_id"]))
        leaves = [leave for leave in self.leaves.values() if leave["doctor_id"] == doctor_id]
        return {"success": True, "data": {"shifts": shifts, "leaves": leaves}}

    def list_shifts(self, date: str, ward_id: str | None = None) -> dict[str, Any]:
        """List the shifts of a day.

        Args:
            date: The day, YYYY-MM-DD.
            ward_id: Only shifts on this ward.
        """
        found = [
            shift for shift in self.shifts.values() if shift["date"] == date and ward_id in (None, shift["ward_id"])
        ]
        return {"success": True, "data": found}

    def list_open_shifts(self) -> dict[str, Any]:
        """List the shifts that are not cancelled and lack doctors, with the number of doctors missing."""
        found = [
            {"shift_id": shift["shift_id"], "missing": shift["needed"] - len(shift["doctor_ids"])}
            for shift in self.shifts.values()
            if shift["status"] != "cancelled" and len(shift["doctor_ids"]) < shift["needed"]
        ]
        return {"success": True, "data": found}

    def list_leave(self, status: Literal["requested", "approved", "rejected"] = "requested") -> dict[str, Any]:
        """List leave by its status.

        Args:
            status: Status of the leave.
        """
        return {"success": True, "data": [leave for leave in self.leaves.values() if leave["status"] == status]}

    def get_notes(self, shift_id: str) -> dict[str, Any]:
        """List the notes on a shift, the oldest first.

        Args:
            shift_id: Id of the shift.
        """
        if shift_id not in self.shifts:
            return {"success": False, "error": f"there is no shift {shift_id}"}
        return {"success": True, "data": self.notes.get(shift_id, [])}

    # Changes

    def add_doctor(
        self, name: str, grade: Literal["junior", "senior"], skills: list[str], phone: str | None = None
    ) -> dict[str, Any]:
        """Add a doctor.

        Args:
            name: Full name.
            grade: Grade.
            skills: Skills, each once.
            phone: Telephone number, if there is one.
        """
        if not name.strip() or len(set(skills)) < len(skills):
            return {"success": False, "error": "a name is needed, and each skill once"}
        doctor_id = self._make_id("D")
        self.doctors[doctor_id] = {
            "doctor_id": doctor_id,
            "name": name,
            "grade": grade,
            "skills": sorted(skills),
            "phone": phone,
        }
        return {"success": True, "message": f"doctor {doctor_id} was added", "doctor_id": doctor_id}

    def add_skill(self, doctor_id: str, skill: str) -> dict[str, Any]:
        """Add a skill to a doctor.

        Args:
            doctor_id: Id of the doctor.
            skill: Skill that the doctor does not have yet.
        """
        doctor = self.doctors.get(doctor_id)
        if doctor is None or not skill.strip() or skill in doctor["skills"]:
            return {"success": False, "error": f"there is no doctor {doctor_id} without the skill {skill!r}"}
        doctor["skills"] = sorted([*doctor["skills"], skill])
        return {"success": True, "message": f"doctor {doctor_id} has {len(doctor['skills'])} skills"}

    def add_shift(
        self, ward_id: str, date: str, period: Period, needed: int = 1, required_skill: str | None = None
    ) -> dict[str, Any]:
        """Draft a shift. A ward has one shift in each period of a day, cancelled ones apart.

        Args:
            ward_id: Id of the ward.
            date: The day, YYYY-MM-DD.
            period: Period of the day.
            needed: Number of doctors, 1 to 10.
            required_skill: Skill that each of them must have.
        """
        if ward_id not in self.wards or not DATE.fullmatch(date) or not 1 <= needed <= 10:
            return {"success": False, "error": "a ward, a date YYYY-MM-DD and 1 to 10 doctors are needed"}
        if any(
            (one["ward_id"], one["date"], one["period"]) == (ward_id, date, period) and one["status"] != "cancelled"
            for one in self.shifts.values()
        ):
            return {"success": False, "error": f"ward {ward_id} has a {period} shift on {date}"}
        shift_id = self._make_id("S")
        self.shifts[shift_id] = {
            "shift_id": shift_id,
            "ward_id": ward_id,
            "date": date,
            "period": period,
            "needed": needed,
            "required_skill": required_skill,
            "doctor_ids": [],
            "status": "draft",
        }
        return {"success": True, "message": f"shift {shift_id} was drafted", "shift_id": shift_id}

    def assign_doctor(self, shift_id: str, doctor_id: str) -> dict[str, Any]:
        """Assign a doctor to a shift that is not cancelled and not full.

        The doctor must have the required skill, be neither on approved leave nor on another shift that day, and have
        fewer than five shifts.

        Args:
            shift_id: Id of the shift.
            doctor_id: Id of the doctor.
        """
        shift = self.shifts.get(shift_id)
        if shift is None or shift["status"] == "cancelled" or len(shift["doctor_ids"]) >= shift["needed"]:
            return {"success": False, "error": f"shift {shift_id} needs no doctor"}
        if error := self._find_conflict(shift, doctor_id):
            return {"success": False, "error": error}
        shift["doctor_ids"].append(doctor_id)
        return {"success": True, "message": f"doctor {doctor_id} is on shift {shift_id}"}

    def remove_doctor(self, shift_id: str, doctor_id: str) -> dict[str, Any]:
        """Take a doctor off a shift. A published shift becomes a draft again.

        Args:
            shift_id: Id of the shift.
            doctor_id: Id of a doctor who is on it.
        """
        shift = self.shifts.get(shift_id)
        if shift is None or shift["status"] == "cancelled" or doctor_id not in shift["doctor_ids"]:
            return {"success": False, "error": f"doctor {doctor_id} is not on shift {shift_id}"}
        shift["doctor_ids"].remove(doctor_id)
        shift["status"] = "draft"
        return {"success": True, "message": f"doctor {doctor_id} is off shift {shift_id}"}

    def publish_shift(self, shift_id: str) -> dict[str, Any]:
        """Publish a drafted shift that has all its doctors, among them the senior ones that its ward needs.

        Args:
            shift_id: Id of the shift.
        """
        shift = self.shifts.get(shift_id)
        if shift is None or shift["status"] != "draft" or len(shift["doctor_ids"]) < shift["needed"]:
            return {"success": False, "error": f"shift {shift_id} is no draft with all its doctors"}
        n_seniors = sum(self.doctors[one]["grade"] == "senior" for one in shift["doctor_ids"])
        if n_seniors < self.wards[shift["ward_id"]]["min_seniors"]:
            return {"success": False, "error": f"shift {shift_id} has {n_seniors} senior doctors, too few for its ward"}
        shift["status"] = "published"
        return {"success": True, "message": f"shift {shift_id} is published"}

    def cancel_shift(self, shift_id: str) -> dict[str, Any]:
        """Cancel a shift and take its doctors off it.

        Args:
            shift_id: Id of the shift.
        """
        shift = self.shifts.get(shift_id)
        if shift is None or shift["status"] == "cancelled":
            return {"success": False, "error": f"there is no shift {shift_id} to cancel"}
        shift["status"] = "cancelled"
        shift["doctor_ids"] = []
        return {"success": True, "message": f"shift {shift_id} is cancelled"}

    def request_leave(self, doctor_id: str, first_day: str, last_day: str) -> dict[str, Any]:
        """Apply for leave.

        Args:
            doctor_id: Id of the doctor.
            first_day: First day, YYYY-MM-DD.
            last_day: Last day, not before the first.
        """
        if doctor_id not in self.doctors:
            return {"success": False, "error": f"there is no doctor {doctor_id}"}
        if not DATE.fullmatch(first_day) or not DATE.fullmatch(last_day) or last_day < first_day:
            return {"success": False, "error": "first_day and last_day are dates YYYY-MM-DD, in this order"}
        leave_id = self._make_id("V")
        self.leaves[leave_id] = {
            "leave_id": leave_id,
            "doctor_id": doctor_id,
            "first_day": first_day,
            "last_day": last_day,
            "status": "requested",
        }
        return {"success": True, "message": f"leave {leave_id} is requested", "leave_id": leave_id}

    def decide_leave(self, leave_id: str, approve: bool) -> dict[str, Any]:
        """Approve or reject leave that is requested. It is approved only if the doctor has no shift on these days.

        Args:
            leave_id: Id of the leave.
            approve: Whether it is approved.
        """
        leave = self.leaves.get(leave_id)
        if leave is None or leave["status"] != "requested":
            return {"success": False, "error": f"there is no requested leave {leave_id}"}
        days = [shift["date"] for shift in self._find_shifts_of(leave["doctor_id"])]
        if approve and any(leave["first_day"] <= day <= leave["last_day"] for day in days):
            return {"success": False, "error": f"doctor {leave['doctor_id']} has a shift on these days"}
        leave["status"] = "approved" if approve else "rejected"
        return {"success": True, "message": f"leave {leave_id} is {leave['status']}"}

    def add_note(self, shift_id: str, doctor_id: str, text: str) -> dict[str, Any]:
        """Add a note of a doctor to a shift.

        Args:
            shift_id: Id of the shift.
            doctor_id: Id of the doctor who writes it.
            text: The note.
        """
        if shift_id not in self.shifts or doctor_id not in self.doctors or not text.strip():
            return {"success": False, "error": "a shift, a doctor and a text are needed"}
        self.notes.setdefault(shift_id, []).append({"doctor_id": doctor_id, "text": text})
        return {"success": True, "message": f"shift {shift_id} has {len(self.notes[shift_id])} notes"}

    # Helpers

    def _find_conflict(self, shift: Shift, doctor_id: str) -> str | None:
        """Return why a doctor cannot be on a shift, or None."""
        doctor = self.doctors.get(doctor_id)
        if doctor is None:
            return f"there is no doctor {doctor_id}"
        if shift["required_skill"] is not None and shift["required_skill"] not in doctor["skills"]:
            return f"doctor {doctor_id} lacks the skill {shift['required_skill']}"
        if any(
            leave["doctor_id"] == doctor_id
            and leave["status"] == "approved"
            and leave["first_day"] <= shift["date"] <= leave["last_day"]
            for leave in self.leaves.values()
        ):
            return f"doctor {doctor_id} is on leave on {shift['date']}"
        others = self._find_shifts_of(doctor_id)
        if any(one["date"] == shift["date"] for one in others):
            return f"doctor {doctor_id} has a shift on {shift['date']}"
        return f"doctor {doctor_id} has {len(others)} shifts" if len(others) >= MAX_SHIFTS_PER_DOCTOR else None

    def _find_shifts_of(self, doctor_id: str) -> list[Shift]:
        return [
            shift
            for shift in self.shifts.values()
            if doctor_id in shift["doctor_ids"] and shift["status"] != "cancelled"
        ]

    def _make_id(self, letter: str) -> str:
        self.counters[letter] = self.counters.get(letter, 0) + 1
        return f"{letter}{self.counters[letter]}"
