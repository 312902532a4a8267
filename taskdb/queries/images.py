"""Queries about images: which are needed, and where registries have copies."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from sqlalchemy import bindparam, text

from taskdb.records.images import ImageCopy
from taskdb.schema.batches import execute_in_batches
from taskdb.store import Store


@dataclass(frozen=True, kw_only=True)
class ImageNeeds:
    """Images that tasks and changes need, by name."""

    certified: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Image -> sorted names of the tasks certified on it, superseded records included."""
    in_tasks: frozenset[str] = frozenset()
    """Images of all tasks, rejected included."""
    in_open_changes: frozenset[str] = frozenset()
    """Images of pending changes."""
    known: frozenset[str] = frozenset()
    """Images of all environments and tasks of this database."""


def load_image_needs(store: Store) -> ImageNeeds:
    """Return which images are needed, in a single transaction."""
    with store.read_transaction() as connection:
        certified: dict[str, set[str]] = {}
        for row in connection.execute(text(_CERTIFIED)):
            certified.setdefault(row.image, set()).add(row.name)
        return ImageNeeds(
            certified={image: tuple(sorted(names)) for image, names in certified.items()},
            in_tasks=frozenset(connection.execute(text(_IN_TASKS)).scalars()),
            in_open_changes=frozenset(connection.execute(text(_IN_OPEN_CHANGES)).scalars()),
            known=frozenset(connection.execute(text(_KNOWN)).scalars()),
        )


_CERTIFIED = "SELECT DISTINCT t.image, t.name FROM certificate k JOIN task t ON t.id = k.parent WHERE t.image <> ''"
_IN_TASKS = "SELECT DISTINCT image FROM task WHERE image <> ''"
_KNOWN = "SELECT image FROM environment UNION SELECT image FROM task WHERE image <> ''"
_IN_OPEN_CHANGES = """SELECT DISTINCT e.image FROM changes h JOIN environment e ON e.id = h.environment
              WHERE h.status NOT IN ('certified', 'rejected')"""
_COPIES = "SELECT image, image_digest, reference, added_at FROM image_copy {} ORDER BY seq DESC"
_ALL_COPIES = text(_COPIES.format(""))
_COPIES_OF = text(_COPIES.format("WHERE image IN :keys")).bindparams(bindparam("keys", expanding=True))


def load_image_copies(store: Store, images: Collection[str] | None = None) -> dict[str, tuple[ImageCopy, ...]]:
    """Return image -> its copies in registries, newest first; `images`: of these alone."""
    copies: dict[str, tuple[ImageCopy, ...]] = {}
    if images is not None and not images:
        return copies
    with store.read_transaction() as connection:
        rows = (
            connection.execute(_ALL_COPIES)
            if images is None
            else execute_in_batches(connection, _COPIES_OF, sorted(images))
        )
        for row in rows:
            copy = ImageCopy(image=row.image, image_digest=row.image_digest, reference=row.reference, at=row.added_at)
            copies[row.image] = (*copies.get(row.image, ()), copy)
    return copies
