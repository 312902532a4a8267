"""Sources as the records of a database spell them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from miner.sources import canonicalize_source
from taskdb.queries.sources import has_source

if TYPE_CHECKING:
    from core.settings.storage import StorageSettings
    from taskdb.store import Store


def resolve_source(word: str, storage: StorageSettings, store: Store) -> str:
    """Return a source word as the records of the database have it.

    Paths are absolute in new records. Records of earlier versions may have a relative path; such a word is returned as
    it is, so that their changes are found.

    Args:
        word: a source word.
        storage: place of the clones.
        store: the database.
    """
    canonical = canonicalize_source(word, storage.store_dir / "clones")
    is_old = canonical != word and has_source(store, word) and not has_source(store, canonical)
    return word if is_old else canonical
