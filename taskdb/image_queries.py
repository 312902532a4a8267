"""What the database knows of images: who needs which, and where registries have copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import select, text

from taskdb import tables
from taskdb.images import ImageCopy
from taskdb.mapping import table_of
from taskdb.store import Store


@dataclass(frozen=True, kw_only=True)
class Needs:
    """Who needs which images of environments, by the images' names."""

    certified: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Image -> names of the tasks that were certified on it, sorted; also of chains that count no more."""
    tasked: frozenset[str] = frozenset()
    """Images of all tasks, also of those that were rejected."""
    waiting: frozenset[str] = frozenset()
    """Images of changes that still go on."""
    known: frozenset[str] = frozenset()
    """Images of all environments that were ever accepted here, and of all tasks."""


def needs(store: Store) -> Needs:
    """Who needs which images, in one state of the database."""
    with store.reading() as connection:
        certified: dict[str, set[str]] = {}
        for row in connection.execute(text(_CERTIFIED)):
            certified.setdefault(row.image, set()).add(row.name)
        return Needs(
            certified={image: tuple(sorted(names)) for image, names in certified.items()},
            tasked=frozenset(connection.execute(text(_TASKED)).scalars()),
            waiting=frozenset(connection.execute(text(_WAITING)).scalars()),
            known=frozenset(connection.execute(text(_KNOWN)).scalars()),
        )


_CERTIFIED = "SELECT DISTINCT t.image, t.name FROM certificate k JOIN task t ON t.id = k.parent WHERE t.image <> ''"
_TASKED = "SELECT DISTINCT image FROM task WHERE image <> ''"
_KNOWN = "SELECT image FROM environment UNION SELECT image FROM task WHERE image <> ''"
_WAITING = """SELECT DISTINCT e.image FROM changes h JOIN environment e ON e.id = h.environment
              WHERE h.status NOT IN ('certified', 'rejected')"""


def copies(store: Store) -> dict[str, tuple[ImageCopy, ...]]:
    """Image -> its copies in registries, newest first."""
    row = table_of(tables.ImageCopyRow)
    query = select(row.c.image, row.c.image_digest, row.c.reference, row.c.added_at).order_by(row.c.seq.desc())
    found: dict[str, tuple[ImageCopy, ...]] = {}
    with store.reading() as connection:
        for one in connection.execute(query):
            copy = ImageCopy(image=one.image, image_digest=one.image_digest, reference=one.reference, at=one.added_at)
            found[one.image] = (*found.get(one.image, ()), copy)
    return found
