"""Identity of records: fields added later do not change the ids of records that were stored without them."""

from __future__ import annotations

from typing import Annotated

import pytest

from exporters.bundle_records import list_artifacts
from mergemill.bench.sets import hash_grading
from taskdb.records import FlakyTest, Injection, Kind, RunVariant, Task, Verification
from taskdb.records.base import LATER, MEASURED, Part, Record
from taskdb.records.oracles import Defect, LaterFix, MaterialSize, ReviewOracle
from tests import records

OLD_ID = "8d847aa65f104f8599c2762554185f1c4e18649b2c10d69fa069425b8ae2a2ed"
"""Id of the first parcel below, before it and its parts had the fields marked `LATER`."""

OLD_REVIEW = "868b09a83ab29784427acad562973d6c86edf7b42bc522decbe8df0c4b5977dd"
OLD_REVIEW_GRADING = "1929d4950a97b1b2a2efaf419508cecbb90563d32540c43368155bde5bc7a941"
"""Id of the review below, and the hash of its grading in frozen sets, before reviews had trees."""


class Wrapping(Part):
    """A part with a field added later."""

    width: int
    depth: Annotated[int, LATER] = 0


class Item(Part):
    """An element of a sequence with a field added later and a measured one."""

    name: str
    weight: Annotated[int | None, LATER] = None


class Parcel(Record):
    """A record with a field added later."""

    label: str
    items: tuple[Item, ...]
    wrapping: Wrapping
    notes: Annotated[tuple[str, ...], LATER] = ()
    seconds: Annotated[float, MEASURED] = 0.0


def test_defaults_of_later_fields_keep_the_id() -> None:
    parcel = Parcel(label="x", items=(Item(name="a"),), wrapping=Wrapping(width=1))
    assert parcel.id == OLD_ID
    assert parcel.model_copy(update={"seconds": 2.0}).id == OLD_ID


@pytest.mark.parametrize(
    "parcel",
    [
        Parcel(label="x", items=(Item(name="a"),), wrapping=Wrapping(width=1), notes=("fragile",)),
        Parcel(label="x", items=(Item(name="a", weight=0),), wrapping=Wrapping(width=1)),
        Parcel(label="x", items=(Item(name="a"),), wrapping=Wrapping(width=1, depth=2)),
    ],
)
def test_other_values_of_later_fields_identify(parcel: Parcel) -> None:
    assert parcel.id != OLD_ID
    assert Parcel.model_validate_json(parcel.model_dump_json()).id == parcel.id


def test_a_copy_with_other_fields_has_an_id_of_its_own() -> None:
    parcel = Parcel(label="x", items=(Item(name="a"),), wrapping=Wrapping(width=1))
    assert parcel.id == OLD_ID
    copy = parcel.model_copy(update={"label": "y"})
    assert copy.id == Parcel(label="y", items=(Item(name="a"),), wrapping=Wrapping(width=1)).id
    assert copy.model_copy(update={"label": "x", "seconds": 1.0}).id == OLD_ID


def test_flaky_tests_do_not_identify_a_verification() -> None:
    candidate = records.make_candidate(records.make_pull_request(1))
    environment = records.make_environment(candidate)
    calm = records.make_verification(environment)
    counts = {RunVariant.GOLD: {"absent": 1, "passed": 2}, RunVariant.TEST_ONLY: {"failed": 3}}
    flaky = FlakyTest(test="t.py::at_12:30:05", counts=counts)
    varied = records.make_verification(environment, flaky_tests=(flaky,))
    assert Verification.model_validate_json(varied.model_dump_json()).flaky_tests == (flaky,)
    assert varied.id == calm.id
    earlier = records.make_verification(environment, flaky=(("t.py::a", "gold: passed 2, failed 1"),))
    assert earlier.id != calm.id
    assert [verification.list_flaky() for verification in (earlier, varied)] == [
        [("t.py::a", "gold: passed 2, failed 1")],
        [("t.py::at_12:30:05", "test-only: failed 3; gold: passed 2, absent 1")],
    ]


def test_how_bugs_were_made_does_not_identify_a_task() -> None:
    pull = records.make_pull_request(1)
    candidate = records.make_candidate(pull)
    task = records.make_task(records.make_verification(records.make_environment(candidate)), candidate)
    injection = Injection(path="a.py", function="f", operator="constant", line=3, detail="1 became 2")
    injected = task.model_copy(update={"injections": (injection,)})
    stored_before = task.model_dump(mode="json", exclude={"injections"})
    assert Task.model_validate(stored_before) == task
    assert Task.model_validate_json(injected.model_dump_json()).injections == (injection,)
    assert Task.model_validate_json(injected.model_dump_json()).id == task.id


def make_review(**fields: object) -> Task:
    candidate = records.make_candidate(records.make_pull_request())
    task = records.make_task(records.make_verification(records.make_environment(candidate)), candidate)
    defect = Defect(path="shop.py", first_line=4, last_line=5, claim="Off by one")
    oracle = ReviewOracle(target="diff", files="a" * 64, diff="b" * 64, defects=(defect,))
    return Task(**task.model_dump() | {"kind": Kind.REVIEW, "oracle": oracle.model_copy(update=fields)})


def test_reviews_without_a_tree_are_those_of_earlier_versions() -> None:
    review, commit = make_review(), "c" * 64
    assert (review.id, hash_grading(review)) == (OLD_REVIEW, OLD_REVIEW_GRADING)
    assert review.list_tree_commits() == (review.base_commit,)
    size = MaterialSize(files=1, n_bytes=2)
    others = (LaterFix(path="shop.py", first_line=1, last_line=1, message="Fix it"),)
    assert make_review(material=size, others=others).id == OLD_REVIEW
    assert hash_grading(make_review(others=others)) != OLD_REVIEW_GRADING
    with_tree = make_review(tree=commit, related="d" * 64, material=size)
    assert with_tree.id != OLD_REVIEW
    assert hash_grading(with_tree) == OLD_REVIEW_GRADING
    assert with_tree.list_tree_commits() == (review.base_commit, commit)
    # ids of commits in a repository of SHA-256 look like those of artifacts
    assert commit not in list_artifacts(with_tree)
    assert "d" * 64 in list_artifacts(with_tree)
