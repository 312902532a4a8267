"""Subjects that agents work on: tasks, scenarios and the like, in a form that has nothing of their kind."""
