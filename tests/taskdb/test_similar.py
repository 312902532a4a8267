"""Near duplicates of a change while another driver stores the same one."""

from __future__ import annotations

from typing import Any

from sqlalchemy import event

from taskdb.store import Store
from tests import records


def test_a_change_that_another_driver_stores_meanwhile_is_no_duplicate_of_itself(db: str) -> None:
    pull = records.make_pull_request(1)
    candidate = records.make_candidate(pull)
    keys = {candidate.id: (1, 2, 3)}
    with Store.open(db) as store, Store.open(db) as other:

        @event.listens_for(store.engine, "before_cursor_execute")
        def store_it(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
            if "FROM sketch" in statement:
                other.add_mined_changes((pull, candidate, 0.1), sketches=keys)

        assert store.find_similar(pull, (1, 2, 3)) == []
        later = records.make_pull_request(2)
        assert [similar.id for similar in store.find_similar(later, (1, 2, 9))] == [candidate.id]
