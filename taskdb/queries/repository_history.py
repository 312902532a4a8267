"""Facts about a repository that decide how many runs a stage makes: gradings to rely on, and flaky tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, text

from taskdb.records import Certificate, ExploitReference
from taskdb.records.lineage import GoldGradings, RepositoryHistory
from taskdb.store import Store, read_record


@dataclass(frozen=True, kw_only=True)
class _Gradings:
    """Gradings of a repository's certificates. `last`: number (`seq`) of the newest certificate that was read."""

    last: int = 0
    exploits: Mapping[str, ExploitReference] = field(default_factory=dict)
    """Key of an environment family -> its first certified task with exploits of its own."""
    gold: Mapping[str, GoldGradings] = field(default_factory=dict)
    """Key of a gold tree -> the gradings of its first certified task that has all of its own."""


@dataclass(frozen=True)
class HistoryReader:
    """Reader of facts about repositories, which keeps what cannot change: records are only added.

    Several threads may use it. A record that another process stores meanwhile is seen by the next call.
    """

    store: Store
    gradings: dict[str, _Gradings] = field(default_factory=dict)
    """Repository -> gradings of its certificates so far."""
    flaky: set[str] = field(default_factory=set)
    """Repositories with flaky tests."""

    def find(self, repo: str) -> RepositoryHistory:
        """Return the facts about a repository."""
        with self.store.read_transaction() as connection:
            if repo not in self.flaky and connection.execute(_FLAKY, {"repo": repo}).first():
                self.flaky.add(repo)
            gradings = self._read_gradings(connection, repo)
        return RepositoryHistory(
            exploited_families=gradings.exploits, gold_gradings=gradings.gold, is_steady=repo not in self.flaky
        )

    def _read_gradings(self, connection: Connection, repo: str) -> _Gradings:
        """Return the gradings of the certificates of a repository.

        A certificate exists only where all submissions earned what they must. Those that came with a bundle do not
        count: a bundle may come from anyone, and no stage of this database has made its gradings.
        """
        known = self.gradings.get(repo, _Gradings())
        rows = connection.execute(_CERTIFICATES, {"repo": repo, "last": known.last}).all()
        if not rows:
            return known
        exploits: dict[str, ExploitReference] = {}
        gold: dict[str, GoldGradings] = {}
        for row in rows:
            certificate = read_record(connection, Certificate, row.id, row.body)
            if certificate.environment_family and certificate.exploits:
                reference = ExploitReference(task=certificate.parent, name=certificate.name)
                exploits.setdefault(certificate.environment_family, reference)
            if certificate.gold_tree and certificate.gold_of is None:
                gold.setdefault(certificate.gold_tree, GoldGradings.read(certificate))
        self.gradings[repo] = _Gradings(
            last=rows[-1].seq, exploits={**exploits, **known.exploits}, gold={**gold, **known.gold}
        )
        return self.gradings[repo]


_CERTIFICATES = text("""SELECT k.seq, k.id, k.body FROM task t JOIN certificate k ON k.parent = t.id
                        WHERE t.repo = :repo AND k.seq > :last
                        AND EXISTS (SELECT 1 FROM event e WHERE e.record = k.id AND e.stage = 'certify' AND e.ok)
                        ORDER BY k.seq""")
_FLAKY = text("""SELECT 1 FROM candidate c JOIN verification v ON v.candidate = c.id
                 WHERE c.repo = :repo AND v.n_flaky > 0
                 UNION ALL
                 SELECT 1 FROM candidate c JOIN environment e ON e.parent = c.id JOIN rejection r ON r.parent = e.id
                 WHERE c.repo = :repo AND r.stage = 'verify' AND r.reason = 'flaky'
                 UNION ALL
                 SELECT 1 FROM task t JOIN rejection r ON r.parent = t.id
                 WHERE t.repo = :repo AND r.stage = 'certify' AND r.reason = 'gold-fails'
                 LIMIT 1""")
"""A row where tests were left out or a change rejected as flaky, or gold failed in a grading of its certificate."""
