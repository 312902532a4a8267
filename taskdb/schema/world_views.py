"""The views of synthesised worlds and simulated conversations, which `taskdb.schema.views` has with all others.

They read the records' tables: these have thousands of rows, where the listings of changes have millions. A rejected
record with a child is not rejected, and of several records of a parent and name the newest is shown.
"""

from __future__ import annotations

THEMES = """
SELECT t.id, t.name, t.label, t.source, t.license, t.usefulness, t.modelability, t.model, t.parent AS seed_task,
       CASE WHEN w.id IS NOT NULL THEN 'built' WHEN r.id IS NOT NULL THEN 'rejected' ELSE 'waiting' END AS status,
       r.step AS rejected_by, r.reason, w.id AS world, t.added_at
FROM theme t
LEFT JOIN world w ON w.seq = (SELECT max(x.seq) FROM world x WHERE x.parent = t.id)
LEFT JOIN world_rejection r ON w.id IS NULL
     AND r.seq = (SELECT max(x.seq) FROM world_rejection x WHERE x.parent = t.id)
"""

WORLDS = """
SELECT w.id, w.name, w.origin, w.environment, w.source, w.license, w.parent AS theme, w.model,
       CASE WHEN c.id IS NOT NULL THEN 'certified' WHEN r.id IS NOT NULL THEN 'rejected' ELSE 'waiting' END AS status,
       r.reason, w.n_tools, w.n_queries, w.n_changes, w.n_attributes, c.id AS certificate, c.n_calls, c.rounds,
       c.passed, c.warned, c.failed, c.pass_rate, c.score, w.added_at
FROM world w
LEFT JOIN world_certificate c ON c.seq = (SELECT max(x.seq) FROM world_certificate x WHERE x.parent = w.id)
LEFT JOIN world_rejection r ON c.id IS NULL
     AND r.seq = (SELECT max(x.seq) FROM world_rejection x WHERE x.parent = w.id AND x.step = 'assess')
WHERE w.seq = (SELECT max(x.seq) FROM world x WHERE x.name = w.name AND x.source = w.source AND x.origin = w.origin
                                                AND coalesce(x.parent, '') = coalesce(w.parent, ''))
"""

SCENARIOS = """
SELECT s.id, s.name, s.world AS world_name, s.parent AS world, w.origin, s.environment, w.source, s.license, s.model,
       CASE WHEN c.id IS NOT NULL THEN 'certified' WHEN r.id IS NOT NULL THEN 'rejected' ELSE 'waiting' END AS status,
       r.reason, s.n_checks, c.id AS certificate, c.solution_origin, c.n_calls, c.n_tools, c.n_queries, c.n_kept,
       c.mutations, c.mutations_noticed, s.added_at
FROM scenario s JOIN worlds w ON w.id = s.parent
LEFT JOIN scenario_certificate c ON c.seq = (SELECT max(x.seq) FROM scenario_certificate x WHERE x.parent = s.id)
LEFT JOIN world_rejection r ON c.id IS NULL
     AND r.seq = (SELECT max(x.seq) FROM world_rejection x WHERE x.parent = s.id)
WHERE s.seq = (SELECT max(x.seq) FROM scenario x WHERE x.parent = s.parent AND x.name = s.name)
"""

WORLD_REJECTIONS = """
SELECT r.id, r.name, r.source, r.step, r.reason, r.detail, r.parent, r.added_at
FROM world_rejection r
WHERE r.seq = (SELECT max(x.seq) FROM world_rejection x
               WHERE x.parent = r.parent AND x.name = r.name AND x.step = r.step)
  AND NOT EXISTS (SELECT 1 FROM theme t WHERE t.parent = r.parent)
  AND NOT EXISTS (SELECT 1 FROM world w WHERE w.parent = r.parent)
  AND NOT EXISTS (SELECT 1 FROM world_certificate c WHERE c.parent = r.parent AND r.step = 'assess')
  AND NOT EXISTS (SELECT 1 FROM scenario s WHERE s.parent = r.parent AND s.name = r.name)
  AND NOT EXISTS (SELECT 1 FROM scenario_certificate c WHERE c.parent = r.parent)
"""

SIMULATED_CONVERSATIONS = """
SELECT c.id, c.name, c.environment, c.parent AS seed, c.domain, c.pack_version, c.profile, c.simulator, c.prompt,
       c.sample, c.scenario, c.failure, c.license, c.n_turns, c.n_calls, c.answer, c.trajectory, c.added_at
FROM simulated_conversation c
WHERE c.seq = (SELECT max(x.seq) FROM simulated_conversation x WHERE x.answer = c.answer AND x.name = c.name)
"""

SIMULATION_REJECTIONS = """
SELECT r.id, r.name, r.environment, r.parent AS seed, r.domain, r.profile, r.simulator, r.step, r.reason, r.detail,
       r.answer, r.added_at
FROM simulation_rejection r
WHERE r.seq = (SELECT max(x.seq) FROM simulation_rejection x
               WHERE x.answer = r.answer AND x.name = r.name AND x.domain = r.domain)
  AND NOT EXISTS (SELECT 1 FROM simulated_conversation c
                  WHERE c.parent = r.parent
                    AND (c.answer = r.answer AND c.name = r.name OR r.step = 'pre-filter' AND c.domain = r.domain))
"""

WORLD_VIEWS: dict[str, str] = {
    "themes": THEMES,
    "worlds": WORLDS,
    "scenarios": SCENARIOS,
    "world_rejections": WORLD_REJECTIONS,
    "simulated_conversations": SIMULATED_CONVERSATIONS,
    "simulation_rejections": SIMULATION_REJECTIONS,
}
