"""Commands that read the task database: tasks, funnel, why, sql."""
