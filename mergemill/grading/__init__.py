"""Grading of submissions, one by one, queued or as files of predictions, and audits of tasks."""
