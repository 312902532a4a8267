"""Queries about images: which are needed, and which registries have copies."""

from __future__ import annotations

from taskdb.queries.images import load_image_copies, load_image_needs
from taskdb.records import Stage
from taskdb.records.images import ImageCopy
from taskdb.records.work import StageResult
from taskdb.store import Store
from tests import records
from tests.taskdb.lineages import add_lineage


def copy(image: str, digest: str, registry: str = "localhost:5000/ada") -> ImageCopy:
    return ImageCopy(
        image=image,
        image_digest="sha256:" + records.make_sha(image),
        reference=f"{registry}/env@sha256:{digest * 64}",
        at="2024-05-01T12:00:00+00:00",
    )


def test_the_newest_copy_comes_first(db: str) -> None:
    first, second, other = (
        copy("mergemill/env:a-1", "1"),
        copy("mergemill/env:a-1", "2"),
        copy("mergemill/env:b-1", "3"),
    )
    with Store.open(db) as store:
        for image_copy in (first, other, second):
            store.add(image_copy)
        image_copies = load_image_copies(store)
    assert [image_copy.reference for image_copy in image_copies["mergemill/env:a-1"]] == [
        second.reference,
        first.reference,
    ]
    assert [image_copy.reference for image_copy in image_copies["mergemill/env:b-1"]] == [other.reference]


def test_pushing_an_image_again_adds_no_copy(db: str) -> None:
    again = copy("mergemill/env:a-1", "1").model_copy(update={"at": "2024-06-01T12:00:00+00:00"})
    with Store.open(db) as store:
        assert store.add(copy("mergemill/env:a-1", "1"))
        assert store.add(again) == []


def test_certified_tasks_and_pending_changes_need_their_images_and_rejected_changes_do_not(db: str) -> None:
    with Store.open(db) as store:
        certified = add_lineage(store)
        for number, rejected in ((7, False), (8, True)):
            pull = records.make_pull_request(number)
            store.add_mined_changes((pull, records.make_candidate(pull), 0.1))
            environment = records.make_environment(records.make_candidate(pull))
            results = [(Stage.BUILD, environment)]
            if rejected:
                results.append((Stage.VERIFY, records.make_rejection(environment, Stage.VERIFY, "flaky")))  # type: ignore[arg-type]
            for stage, result in results:
                store.add_stage_results(
                    StageResult(stage=stage, result=result, source=pull.source, name=pull.name, seconds=1.0)
                )
        image_needs = load_image_needs(store)
    assert image_needs.certified == {certified.image: (certified.name,)}
    assert image_needs.in_open_changes == {"mergemill/ada__greet-7:1"}
    assert image_needs.known == {certified.image, "mergemill/ada__greet-7:1", "mergemill/ada__greet-8:1"}
