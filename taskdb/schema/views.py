"""Documented read-only views (docs/guide/query/query.md): the stable interface of `mergemill sql` and of browsers.

Each is SQL that SQLite and PostgreSQL both accept. The views are created again when this file changes, so a changed
view needs no migration. Order matters: a view may use those before it.
"""

from __future__ import annotations

import hashlib

from taskdb.schema.columns import CHANGE_COLUMNS, DERIVATION_COLUMNS, TASK_COLUMNS
from taskdb.schema.indices import INDICES
from taskdb.schema.question_views import QUESTION_VIEWS
from taskdb.schema.world_views import WORLD_VIEWS

CHANGES = f"SELECT {', '.join(CHANGE_COLUMNS)} FROM change_listing"  # noqa: S608 - names of columns alone
DERIVATIONS = f"SELECT {', '.join(DERIVATION_COLUMNS)} FROM derivation_listing"  # noqa: S608
TASKS = f"SELECT {', '.join(TASK_COLUMNS)} FROM task_listing"  # noqa: S608

TAGS = """
SELECT h.source, h.name, p.repo, t.change_kind, t.rank, t.confidence, t.rule, t.quote, t.route,
       g.language, g.size, g.changed_files, g.changed_lines, h.pull_request, c.id AS candidate, g.id AS tags
FROM change h
JOIN pull_request p ON p.id = h.pull_request
JOIN tagging g ON g.id = h.tagging
JOIN tag t ON t.tagging = g.id
LEFT JOIN candidate c ON c.id = h.result
"""

CANDIDATES = """
SELECT c.id, c.name, c.source, c.repo, c.language, c.license, c.base_commit, c.created_at, c.gold_lines, c.test_lines,
       h.status, c.tests
FROM changes h JOIN candidate c ON c.id = h.candidate
"""

ENVIRONMENTS = """
SELECT e.id, e.name, h.source, h.repo, h.candidate, e.language_version, e.image, e.image_digest, e.image_bytes,
       e.attempt, e.collected_share, e.seconds, e.test_seconds
FROM changes h JOIN environment e ON e.id = h.environment AND e.parent = h.candidate
"""

VERIFICATIONS = """
SELECT v.id, v.name, h.source, h.repo, h.candidate, h.environment, v.n_fail_to_pass, v.n_pass_to_pass, v.n_flaky,
       v.repeats, v.seconds
FROM changes h JOIN verification v ON v.id = h.verification AND v.candidate = h.candidate
"""

VERDICTS = """
SELECT j.id, j.name, h.source, h.repo, h.candidate, h.verification, j.underspecified, j.unfair_tests, j.set_aside,
       j.n_findings, j.n_opinions, j.agreement, j.tokens, j.cost, j.seconds
FROM changes h JOIN verdict j ON j.id = h.verdict AND j.candidate = h.candidate
"""

FINDINGS = """
SELECT h.source, h.name, h.repo, h.candidate, h.verdict, f.rule, f.quote, f.detail, f.quote_source
FROM changes h JOIN finding f ON f.verdict = h.verdict
"""

REJECTIONS = """
SELECT r.id, r.name, h.source, h.repo, r.stage, r.kind, r.reason, r.detail, r.seconds, r.parent
FROM changes h JOIN rejection r ON r.id = h.rejection
"""

EVENTS = """
SELECT seq, stage, kind, name, source, parent, record, ok, reason, detail, seconds, at FROM event
"""

FUNNEL = """
SELECT source, value AS repo, CAST(sum(n) AS BIGINT) AS mined,
       CAST(sum(CASE WHEN outputs LIKE 'c%' THEN n ELSE 0 END) AS BIGINT) AS candidates,
       CAST(sum(CASE WHEN outputs LIKE '_e%' THEN n ELSE 0 END) AS BIGINT) AS environments,
       CAST(sum(CASE WHEN outputs LIKE '__v%' THEN n ELSE 0 END) AS BIGINT) AS verified,
       CAST(sum(CASE WHEN outputs LIKE '____t%' THEN n ELSE 0 END) AS BIGINT) AS tasks,
       CAST(sum(CASE WHEN outputs LIKE '_____c' THEN n ELSE 0 END) AS BIGINT) AS certified,
       CAST(sum(CASE WHEN rejected_by <> '' THEN n ELSE 0 END) AS BIGINT) AS rejected
FROM funnel_count WHERE dimension = 'repo' AND source <> '' GROUP BY source, value
"""

SCORES = """
SELECT s.id, s.task, t.name, s.submission, s.value, s.resolved, s.added_at
FROM score s JOIN task t ON t.id = s.task
"""

AUDITS = """
SELECT a.id, a.parent AS task, a.name, a.clean, a.n_findings, a.strength, a.untested_hunks, a.image_digest, a.at,
       a.seconds
FROM audit a
"""

ROLLOUTS = """
SELECT r.id, r.parent AS task, r.name, coalesce(t.kind, 'scenario') AS kind, coalesce(t.repo, s.world) AS repo,
       CASE WHEN r.environment = '' THEN t.environment ELSE r.environment END AS environment, r.scaffold,
       r.scaffold_version, r.model, r.checkpoint, r.attempt, r.retry, r.origin, r.status, r.reason, r.value, r.resolved,
       r.n_leaks, r.requests, r.prompt_tokens, r.completion_tokens, r.cost, r.seconds, r.at, r.plan
FROM rollout r
LEFT JOIN task t ON t.id = r.parent
LEFT JOIN scenario s ON s.id = r.parent
"""

SIMULATOR_MEASUREMENTS = """
SELECT m.id, m.parent AS task, m.name, t.kind AS task_kind, t.repo, m.environment, m.simulator, m.prompt, m.kind,
       m.submission, m.grader, m.samples, m.resolved, m.predicted, m.probability, m.at
FROM simulator_measurement m JOIN task t ON t.id = m.parent
"""

TRAJECTORIES = """
SELECT y.id, y.parent AS rollout, r.parent AS task, y.name,
       CASE WHEN r.environment = '' THEN t.environment ELSE r.environment END AS environment, y.root, y.role,
       y.scaffold, y.model, r.checkpoint, y.attempt, y.value, r.resolved, y.n_requests, y.n_branches, y.prompt_tokens,
       y.completion_tokens, y.has_token_ids, s.selected, s.reason AS refused_by, y.added_at
FROM trajectory y
JOIN rollout r ON r.id = y.parent
LEFT JOIN task t ON t.id = r.parent
LEFT JOIN trajectory_selection s ON s.seq = (SELECT max(x.seq) FROM trajectory_selection x WHERE x.parent = y.id)
"""

DIFFICULTY = """
SELECT r.parent AS task, r.name, CASE WHEN r.environment = '' THEN t.environment ELSE r.environment END AS environment,
       r.model, r.checkpoint, r.scaffold, CAST(count(r.value) AS BIGINT) AS n,
       CAST(sum(CASE WHEN r.resolved THEN 1 ELSE 0 END) AS BIGINT) AS c, avg(r.value) AS mean_value
FROM rollout r LEFT JOIN task t ON t.id = r.parent
WHERE r.value IS NOT NULL
GROUP BY r.parent, r.name, r.environment, t.environment, r.model, r.checkpoint, r.scaffold
"""

BUNDLES = """
SELECT id, format, n_tasks, out, manifest_sha256, added_at FROM bundle
"""

IMAGE_COPIES = """
SELECT id, image, image_digest, reference, added_at FROM image_copy
"""

VIEWS: dict[str, str] = {
    "changes": CHANGES,
    "derivations": DERIVATIONS,
    "tags": TAGS,
    "candidates": CANDIDATES,
    "environments": ENVIRONMENTS,
    "verifications": VERIFICATIONS,
    "verdicts": VERDICTS,
    "findings": FINDINGS,
    "tasks": TASKS,
    "rejections": REJECTIONS,
    "events": EVENTS,
    "funnel": FUNNEL,
    "scores": SCORES,
    "audits": AUDITS,
    "rollouts": ROLLOUTS,
    "simulator_measurements": SIMULATOR_MEASUREMENTS,
    "trajectories": TRAJECTORIES,
    "difficulty": DIFFICULTY,
    "bundles": BUNDLES,
    "image_copies": IMAGE_COPIES,
    **WORLD_VIEWS,
    **QUESTION_VIEWS,
}

FINGERPRINT = hashlib.sha256(repr((VIEWS, INDICES)).encode()).hexdigest()
"""Hash of all views and indices; a new hash makes an opened database create them again."""
