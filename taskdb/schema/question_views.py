"""The views of exploring: corpora, walks, questions and rejections, which `taskdb.schema.views` has with all others.

As in the views of worlds, a rejected record with a child is not rejected. `best` marks the question of a walk that is
exported: of its certified rounds that whose right samples took most turns, then that which fewer samples solved, then
the latest.
"""

from __future__ import annotations

CORPORA = """
SELECT k.id, k.name, k.source, k.language, k.n_pages, k.n_left_out, k.pages_sha256, k.index_sha256, k.added_at
FROM corpus k
WHERE k.seq = (SELECT max(x.seq) FROM corpus x WHERE x.name = k.name)
"""

WALKS = """
SELECT w.id, w.name, w.parent AS corpus, w.corpus AS corpus_name, w.seed, w.model, w.n_calls, w.n_pages, w.n_facts,
       CASE WHEN q.id IS NOT NULL THEN 'written' WHEN r.id IS NOT NULL THEN 'rejected' ELSE 'waiting' END AS status,
       r.reason, w.added_at
FROM walk w
LEFT JOIN question q ON q.seq = (SELECT max(x.seq) FROM question x WHERE x.walk = w.id AND x.round = 0)
LEFT JOIN question_rejection r ON q.id IS NULL
     AND r.seq = (SELECT max(x.seq) FROM question_rejection x WHERE x.parent = w.id AND x.step = 'write')
"""

QUESTIONS = """
SELECT q.id, q.name, q.corpus, w.corpus AS corpus_name, q.walk, w.name AS walk_name, q.parent, q.round, q.environment,
       q.answer_type, q.license, q.model, q.n_clues,
       CASE WHEN c.id IS NOT NULL THEN 'certified' WHEN r.id IS NOT NULL THEN 'rejected' ELSE 'waiting' END AS status,
       r.reason, c.id AS certificate, coalesce(c.entry_rank, r.entry_rank) AS entry_rank,
       coalesce(c.attempts, r.attempts) AS attempts, coalesce(c.solved, r.solved) AS solved,
       coalesce(c.mean_turns, r.mean_turns) AS mean_turns,
       CASE WHEN c.id IS NULL THEN 0 WHEN EXISTS (
           SELECT 1 FROM question y JOIN question_certificate d
                  ON d.seq = (SELECT max(x.seq) FROM question_certificate x WHERE x.parent = y.id)
           WHERE y.walk = q.walk AND y.id <> q.id
             AND (d.mean_turns > c.mean_turns
                  OR d.mean_turns = c.mean_turns AND d.solved * c.attempts < c.solved * d.attempts
                  OR d.mean_turns = c.mean_turns AND d.solved * c.attempts = c.solved * d.attempts
                     AND (y.round > q.round OR y.round = q.round AND y.seq > q.seq))
       ) THEN 0 ELSE 1 END AS best, q.added_at
FROM question q
JOIN walk w ON w.id = q.walk
LEFT JOIN question_certificate c ON c.seq = (SELECT max(x.seq) FROM question_certificate x WHERE x.parent = q.id)
LEFT JOIN question_rejection r ON c.id IS NULL
     AND r.seq = (SELECT max(x.seq) FROM question_rejection x WHERE x.parent = q.id AND x.step = 'gate')
"""

QUESTION_REJECTIONS = """
SELECT r.id, r.name, r.corpus, r.walk, r.parent, r.step, r.round, r.reason, r.detail, r.attempts, r.solved,
       r.mean_turns, r.added_at
FROM question_rejection r
WHERE r.seq = (SELECT max(x.seq) FROM question_rejection x
               WHERE x.parent = r.parent AND x.name = r.name AND x.step = r.step)
  AND NOT EXISTS (SELECT 1 FROM question_certificate c WHERE c.parent = r.parent AND r.step = 'gate')
  AND NOT EXISTS (SELECT 1 FROM question q WHERE r.step IN ('write', 'evolve') AND q.name = r.name
                                             AND q.walk = r.walk)
  AND NOT EXISTS (SELECT 1 FROM walk w WHERE r.step = 'walk' AND w.name = r.name AND w.parent = r.corpus)
"""

QUESTION_VIEWS: dict[str, str] = {
    "corpora": CORPORA,
    "walks": WALKS,
    "questions": QUESTIONS,
    "question_rejections": QUESTION_REJECTIONS,
}
