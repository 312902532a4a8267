"""Reads tasks of mergemill from a database, a bundle folder or the HTTP API, and grades submissions over HTTP.

::

    import mergemill_client

    with mergemill_client.open("sqlite:///mergemill.db") as database:
        for task in database.tasks(language="python", status="certified", changed_lines=(1, 50)):
            print(task["name"], task["strength"])

    grader = mergemill_client.Grader("http://127.0.0.1:8400", token)
    score = grader.grade("ada__greet-3.bugfix", patch=diff)
    reward = mergemill_client.compute_reward(score)    # None: unscored, which is not 0

Nothing outside the standard library is imported until it is needed: psycopg for PostgreSQL, pyarrow and pandas for
tables.
"""

from mergemill_client.answers import extract_submission
from mergemill_client.columns import TASK_COLUMNS
from mergemill_client.environment import TaskEnvironment, UnscoredError
from mergemill_client.errors import ClientError, TaskNotFoundError
from mergemill_client.grader import AsyncGrader, Grader
from mergemill_client.scores import Score, compute_reward
from mergemill_client.tasks import TaskDatabase, Tasks, open_database

open = open_database  # noqa: A001 - `mergemill_client.open(URL)`

__all__ = [
    "TASK_COLUMNS",
    "AsyncGrader",
    "ClientError",
    "Grader",
    "Score",
    "TaskDatabase",
    "TaskEnvironment",
    "TaskNotFoundError",
    "Tasks",
    "UnscoredError",
    "compute_reward",
    "extract_submission",
    "open",
]
