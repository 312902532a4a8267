"""What the database tells of images: who needs them, and which registries have them."""

from __future__ import annotations

from taskdb.chains import Finished
from taskdb.image_queries import copies, needs
from taskdb.images import ImageCopy
from taskdb.records import Stage
from taskdb.store import Store
from tests import records
from tests.taskdb.chains import whole_chain


def copy(image: str, digest: str, registry: str = "localhost:5000/ada") -> ImageCopy:
    return ImageCopy(
        image=image, image_digest="sha256:" + records.sha(image), reference=f"{registry}/env@sha256:{digest * 64}",
        at="2024-05-01T12:00:00+00:00",
    )  # fmt: skip


def test_the_copy_that_was_pushed_last_comes_first(db: str) -> None:
    first, second, other = (
        copy("mergemill/env:a-1", "1"),
        copy("mergemill/env:a-1", "2"),
        copy("mergemill/env:b-1", "3"),
    )
    with Store.open(db) as store:
        for one in (first, other, second):
            store.add(one)
        found = copies(store)
    assert [one.reference for one in found["mergemill/env:a-1"]] == [second.reference, first.reference]
    assert [one.reference for one in found["mergemill/env:b-1"]] == [other.reference]


def test_pushing_the_same_again_is_no_new_copy(db: str) -> None:
    again = copy("mergemill/env:a-1", "1").model_copy(update={"at": "2024-06-01T12:00:00+00:00"})
    with Store.open(db) as store:
        assert store.add(copy("mergemill/env:a-1", "1"))
        assert store.add(again) == []


def test_certified_tasks_and_waiting_changes_need_their_images_and_rejected_changes_do_not(db: str) -> None:
    with Store.open(db) as store:
        certified = whole_chain(store)
        for number, rejected in ((7, False), (8, True)):
            pull = records.pull_request(number)
            store.mined((pull, records.candidate(pull), 0.1))
            environment = records.environment(records.candidate(pull))
            results = [(Stage.BUILD, environment)]
            if rejected:
                results.append((Stage.VERIFY, records.rejection(environment, Stage.VERIFY, "flaky")))  # type: ignore[arg-type]
            for stage, result in results:
                store.finish(Finished(stage=stage, result=result, source=pull.source, name=pull.name, seconds=1.0))
        found = needs(store)
    assert found.certified == {certified.image: (certified.name,)}
    assert found.waiting == {"mergemill/ada__greet-7:1"}
    assert found.known == {certified.image, "mergemill/ada__greet-7:1", "mergemill/ada__greet-8:1"}
