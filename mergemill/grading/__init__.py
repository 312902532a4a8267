"""Grading of submissions, individually, queued or as files of predictions, and audits of tasks."""
