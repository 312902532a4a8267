"""The step `build`: themes to worlds."""

from __future__ import annotations

from dataclasses import dataclass

from backends.llm.meter import UsageMeter
from mergemill.worlds.making.work import MakingCount, Rejected, WorkBench
from mergemill.worlds.records import make_world_record
from taskdb.queries.worlds import find_pending_themes
from taskdb.records.worlds import Theme as ThemeRecord
from taskdb.records.worlds import World, WorldOrigin, WorldStep
from worlds.discovery.seed_tasks import SeedTask
from worlds.discovery.themes import ThemeDraft
from worlds.model_requests import ModelRole
from worlds.synthesis.building import PROMPTS_OF_WORLDS, WorldBuilder


@dataclass(frozen=True, kw_only=True)
class BuildStep:
    """Themes without a world -> worlds."""

    bench: WorkBench

    def run(self) -> MakingCount:
        """Store worlds and rejections."""
        bench, count = self.bench, MakingCount(step=WorldStep.BUILD)
        pending = find_pending_themes(bench.store, retry=bench.request.retry)
        themes = [theme for theme in pending if bench.request.includes(theme.name, theme.id)]
        count.found = len(themes)

        def keep(theme: ThemeRecord, value: World | Rejected) -> bool:
            if isinstance(value, Rejected):
                bench.reject(WorldStep.BUILD, theme.id, theme.name, theme.source, value)
                count.rejected[value.reason.value] += 1
            else:
                bench.add(value)
                count.kept += 1
            return True

        bench.process(WorldStep.BUILD, "theme", themes, name=lambda theme: theme.name, work=self._build, keep=keep)
        return count

    def _build(self, record: ThemeRecord, meter: UsageMeter) -> World:
        bench = self.bench
        theme = ThemeDraft(
            label=record.label,
            description=record.description,
            usefulness=record.usefulness,
            modelability=record.modelability,
            seed=SeedTask(text=record.task, source=record.source, license=record.license),
        )
        builder = WorldBuilder(name=record.name, theme=theme, models=bench.models, options=bench.options, meter=meter)
        return make_world_record(
            builder.build(),
            bench.artifacts,
            origin=WorldOrigin.SYNTHESISED,
            license_id=record.license,
            parent=record.id,
            model=bench.models.names[ModelRole.WRITER],
            prompt=PROMPTS_OF_WORLDS,
            source=record.source,
        )
