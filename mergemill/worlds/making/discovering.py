"""The step `discover`: seed tasks of a file or of mined repositories to themes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from backends.llm.ledger import RecordedEmbeddings
from backends.llm.meter import UsageMeter
from core.errors import InputError
from mergemill.worlds.making.repositories import read_repositories
from mergemill.worlds.making.work import MakingCount, Rejected, WorkBench
from mergemill.worlds.records import NO_ASSERTION
from taskdb.records.worlds import Theme as ThemeRecord
from taskdb.records.worlds import WorldStep, compute_seed_task_id
from worlds.discovery.inference import THEME_PROMPT, infer_theme
from worlds.discovery.repositories import infer_seed_task
from worlds.discovery.rules import apply_rules
from worlds.discovery.seed_tasks import SeedTask, SeedTasks, read_seed_tasks
from worlds.discovery.themes import ThemeDraft, choose_themes
from worlds.model_requests import ModelRole
from worlds.reasons import Reason

if TYPE_CHECKING:
    from core.settings.mining import MiningSettings

SWE = "swe"
"""Word for the repositories of the task database in place of a file."""
EMBEDDING_PURPOSE = "embedding"


def read_tasks(word: str) -> SeedTasks:
    """Return the seed tasks of a file; none for `swe`, whose tasks are inferred.

    Raises:
        InputError: the file cannot be read or is none.
    """
    return SeedTasks(tasks=()) if word == SWE else read_seed_tasks(Path(word))


@dataclass(frozen=True, kw_only=True)
class DiscoverStep:
    """Seed tasks -> themes. All of them must be answered, since the choice depends on all."""

    bench: WorkBench
    mining: MiningSettings
    tasks: SeedTasks

    def run(self) -> MakingCount:
        """Store themes and rejections.

        Raises:
            MergemillError: calls failed, so that there is no choice yet; a reply that was answered is in the ledger.
        """
        count = MakingCount(step=WorldStep.DISCOVER)
        seeds: Sequence[SeedTask] = self.tasks.tasks
        if self.bench.request.tasks == SWE:
            seeds = self._infer_seeds(count)
        count.found += len(seeds)
        kept: list[SeedTask] = []
        for task, reason, detail in apply_rules(seeds):
            if reason is None:
                kept.append(task)
            else:
                self._reject(task, Rejected(reason=reason, detail=detail), count)
        themes = self._infer_themes(kept, count)
        chosen, others = choose_themes(themes, self.bench.options, self._embed)
        for other in others:
            self._reject(other.theme.seed, Rejected(reason=other.reason, detail=other.detail), count)
        names = {record.name: record.id for record in self.bench.store.load_all(ThemeRecord)}
        for theme in chosen:
            record = self._make_record(theme, names)
            names[record.name] = record.id
            self.bench.add(record)
            self.bench.report(WorldStep.DISCOVER, record.name, record)
            count.kept += 1
        return count

    def _infer_seeds(self, count: MakingCount) -> list[SeedTask]:
        """Return a seed task for each repository whose software has a domain; the others are rejected."""
        from miner.licenses import is_allowed  # noqa: PLC0415 - a file needs no miner

        repositories, allowed = [], self.mining.licenses
        for about in read_repositories(self.bench.store, self.bench.services):
            if allowed and not is_allowed(about.license, allowed):
                seed = SeedTask(text=about.repo, source=about.repo, license=about.license)
                detail = f"{about.license} is not among {', '.join(allowed)}"
                count.found += 1
                self._reject(seed, Rejected(reason=Reason.LICENSE, detail=detail), count)
            else:
                repositories.append(about)
        seeds: list[SeedTask] = []
        outcomes = self.bench.process(
            WorldStep.DISCOVER,
            "repository",
            repositories,
            name=lambda about: about.repo,
            work=lambda about, meter: infer_seed_task(about, self.bench.models, self.bench.options, meter),
            keep=lambda _about, _value: False,
        )
        self._raise_failure()
        for about, outcome in zip(repositories, outcomes, strict=True):
            if isinstance(outcome, SeedTask):
                seeds.append(outcome)
            elif outcome is not None:
                count.found += 1
                self._reject(SeedTask(text=about.repo, source=about.repo, license=about.license), outcome, count)
        return seeds

    def _infer_themes(self, seeds: Sequence[SeedTask], count: MakingCount) -> list[ThemeDraft]:
        def keep(seed: SeedTask, value: ThemeDraft | Rejected) -> bool:
            if isinstance(value, Rejected):
                self._reject(seed, value, count)
            return False

        outcomes = self.bench.process(
            WorldStep.DISCOVER,
            "seed task",
            seeds,
            name=lambda seed: seed.source,
            work=lambda seed, meter: infer_theme(seed, self.bench.models, self.bench.options, meter),
            keep=keep,
        )
        self._raise_failure()
        return [outcome for outcome in outcomes if isinstance(outcome, ThemeDraft)]

    def _raise_failure(self) -> None:
        if self.bench.failures:
            raise self.bench.failures[0]

    def _embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        bench, meter = self.bench, UsageMeter()
        identity = bench.models.make_identity(EMBEDDING_PURPOSE, "themes", "")
        embeddings = RecordedEmbeddings(bench.pool.embeddings, bench.models.ledger, identity, bench.models.pacer)
        try:
            return embeddings.embed(texts, meter=meter)
        except InputError as error:
            name = bench.options.embedding_model
            advice = "name a model of embeddings by --worlds-embedding-model, and its API by --worlds-embedding-url"
            raise InputError(f"no embeddings by {name}: {error}", advice=advice) from error
        finally:
            bench.totals.add(meter)

    def _reject(self, seed: SeedTask, rejected: Rejected, count: MakingCount) -> None:
        parent, source = compute_seed_task_id(seed.text), self.bench.request.tasks
        self.bench.reject(WorldStep.DISCOVER, parent, seed.source, source, rejected)
        self.bench.report(WorldStep.DISCOVER, seed.source, rejected)
        count.rejected[rejected.reason.value] += 1

    def _make_record(self, theme: ThemeDraft, names: dict[str, str]) -> ThemeRecord:
        slug = make_slug(theme.label)
        record = self._name_record(theme, slug)
        return record if names.get(slug, record.id) == record.id else self._name_record(theme, f"{slug}_{theme.id[:6]}")

    def _name_record(self, theme: ThemeDraft, name: str) -> ThemeRecord:
        return ThemeRecord(
            source=self.bench.request.tasks,
            name=name,
            label=theme.label,
            description=theme.description,
            task=theme.seed.text,
            license=theme.seed.license or NO_ASSERTION,
            usefulness=theme.usefulness,
            modelability=theme.modelability,
            model=self.bench.models.names[ModelRole.WRITER],
            prompt=THEME_PROMPT,
        )


def make_slug(label: str) -> str:
    """Return a label as a name: lower case, words joined by `_`."""
    return re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_") or "theme"
