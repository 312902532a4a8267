"""The documented read-only views (docs/query.md), the stable interface for `mergemill sql` and database browsers.

Each is SQL that SQLite and PostgreSQL both accept. The views are created again when this file changes, so a changed
view needs no migration. Order matters: a view may use those before it.
"""

from __future__ import annotations

import hashlib

from taskdb.records import Kind

_MAIN_KINDS = (Kind.BUGFIX, Kind.FEATURE, Kind.PERFORMANCE)
"""Kinds whose tasks are the change itself: the first of these that exists determines the status of a change."""
_KIND_ORDER = (
    "CASE x.kind "
    + "".join(f"WHEN '{kind}' THEN {at} " for at, kind in enumerate(_MAIN_KINDS))
    + f"ELSE {len(_MAIN_KINDS)} END"
)
"""Order in which tasks and rejections of one change determine its status."""

CHANGES = f"""
SELECT h.source, h.name, p.repo, p.number, p.shape, p.title, p.author, p.merged_at,
       CASE WHEN k.id IS NOT NULL THEN 'certified'
            WHEN r.id IS NOT NULL THEN 'rejected'
            WHEN t.id IS NOT NULL THEN 'derived'
            WHEN j.id IS NOT NULL THEN 'judged'
            WHEN v.id IS NOT NULL THEN 'verified'
            WHEN e.id IS NOT NULL THEN 'built'
            ELSE 'mined' END AS status,
       r.stage AS rejected_by, r.reason, r.detail,
       c.language, c.license, g.change_kind, g.size,
       p.id AS pull_request, c.id AS candidate, e.id AS environment, v.id AS verification, j.id AS verdict,
       t.id AS task, k.id AS certificate, r.id AS rejection, g.id AS tags
FROM change h
JOIN pull_request p ON p.id = h.pull_request
LEFT JOIN tagging g ON g.id = h.tagging
LEFT JOIN candidate c ON c.id = h.result
LEFT JOIN environment e ON e.seq = (SELECT max(x.seq) FROM environment x WHERE x.parent = c.id)
LEFT JOIN verification v ON v.seq = (SELECT max(x.seq) FROM verification x WHERE x.parent = e.id)
LEFT JOIN verdict j ON j.seq = (SELECT max(x.seq) FROM verdict x WHERE x.parent = v.id)
LEFT JOIN task t ON t.seq = (SELECT x.seq FROM task x WHERE x.parent = v.id ORDER BY {_KIND_ORDER}, x.seq DESC LIMIT 1)
LEFT JOIN certificate k ON k.seq = (SELECT max(x.seq) FROM certificate x WHERE x.parent = t.id)
LEFT JOIN rejection r ON k.id IS NULL AND r.seq = CASE
    WHEN c.id IS NULL THEN (SELECT x.seq FROM rejection x WHERE x.id = h.result)
    ELSE (SELECT x.seq FROM rejection x WHERE x.parent = coalesce(t.id, j.id, v.id, e.id, c.id)
          AND (x.stage <> 'derive' OR j.id IS NOT NULL) ORDER BY {_KIND_ORDER}, x.seq DESC LIMIT 1) END
"""  # noqa: S608 - of names of kinds alone

# `x.kind || ''`: by its own index, a kind would be looked for among all tasks.
DERIVATIONS = """
SELECT h.source, h.name, h.repo, h.merged_at, h.change_kind, h.candidate, h.verification, t.kind,
       CASE WHEN k.id IS NOT NULL THEN 'certified' WHEN r.id IS NOT NULL THEN 'rejected' ELSE 'derived' END AS status,
       r.stage AS rejected_by, r.reason, r.detail,
       t.id AS task, t.name AS task_name, k.id AS certificate, r.id AS rejection
FROM changes h
JOIN task t ON t.candidate = h.candidate AND (t.parent = h.verification OR t.parent = h.candidate)
LEFT JOIN certificate k ON k.seq = (SELECT max(x.seq) FROM certificate x WHERE x.parent = t.id)
LEFT JOIN rejection r ON k.id IS NULL AND r.seq = (SELECT max(x.seq) FROM rejection x WHERE x.parent = t.id)
WHERE t.seq = (SELECT max(x.seq) FROM task x WHERE x.parent = t.parent AND x.name = t.name)
UNION ALL
SELECT h.source, h.name, h.repo, h.merged_at, h.change_kind, h.candidate, h.verification, r.kind,
       'rejected', r.stage, r.reason, r.detail, NULL, NULL, NULL, r.id
FROM changes h
JOIN rejection r ON r.parent IN (h.verdict, h.candidate) AND r.kind IS NOT NULL
WHERE r.seq = (SELECT max(x.seq) FROM rejection x WHERE x.parent = r.parent AND x.kind = r.kind)
  AND NOT EXISTS (SELECT 1 FROM task x WHERE x.parent IN (h.verification, h.candidate) AND x.kind || '' = r.kind)
"""

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
       h.status
FROM changes h JOIN candidate c ON c.id = h.candidate
"""

ENVIRONMENTS = """
SELECT e.id, e.name, h.source, h.repo, h.candidate, e.language_version, e.image, e.image_digest, e.image_bytes,
       e.attempt, e.collected_share, e.seconds, e.test_seconds
FROM changes h JOIN environment e ON e.id = h.environment
"""

VERIFICATIONS = """
SELECT v.id, v.name, h.source, h.repo, h.candidate, h.environment, v.n_fail_to_pass, v.n_pass_to_pass, v.n_flaky,
       v.repeats, v.seconds
FROM changes h JOIN verification v ON v.id = h.verification
"""

VERDICTS = """
SELECT j.id, j.name, h.source, h.repo, h.candidate, h.verification, j.underspecified, j.unfair_tests, j.set_aside,
       j.n_findings, j.n_opinions, j.agreement, j.tokens, j.cost, j.seconds
FROM changes h JOIN verdict j ON j.id = h.verdict
"""

FINDINGS = """
SELECT h.source, h.name, h.repo, h.candidate, h.verdict, f.rule, f.quote, f.detail, f.quote_source
FROM changes h JOIN finding f ON f.verdict = h.verdict
"""

TASKS = """
SELECT t.id, t.name, t.kind, t.repo, t.language, t.language_version, t.license, t.source, d.status,
       t.base_commit, t.n_fail_to_pass, t.n_pass_to_pass, t.created_at, t.published, t.environment, t.image,
       d.name AS change_name, d.change_kind, d.candidate, d.verification, d.certificate
FROM derivations d JOIN task t ON t.id = d.task
"""

REJECTIONS = """
SELECT r.id, r.name, h.source, h.repo, r.stage, r.kind, r.reason, r.detail, r.seconds, r.parent
FROM changes h JOIN rejection r ON r.id = h.rejection
"""

EVENTS = """
SELECT seq, stage, kind, name, source, parent, record, ok, reason, detail, seconds, at FROM event
"""

FUNNEL = """
SELECT source, repo, count(*) AS mined, count(candidate) AS candidates, count(environment) AS environments,
       count(verification) AS verified, count(task) AS tasks, count(certificate) AS certified,
       count(rejection) AS rejected
FROM changes GROUP BY source, repo
"""

SCORES = """
SELECT s.id, s.task, t.name, s.submission, s.value, s.resolved, s.added_at
FROM score s JOIN task t ON t.id = s.task
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
    "bundles": BUNDLES,
    "image_copies": IMAGE_COPIES,
}

FINGERPRINT = hashlib.sha256(repr(VIEWS).encode()).hexdigest()
"""Hash of all views; a new one makes an opened database create them again."""
