"""A task database for each test, on SQLite and on PostgreSQL.

PostgreSQL is a server of the tests' own, in a temporary folder and without a port. Where it is not installed its tests
are skipped, in CI they fail: `scripts/test` installs it.

A new database is migrated when it is opened first, which takes half a second of CPU on PostgreSQL. So most tests get a
copy of one that was opened before; those of that first opening get an empty one.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psycopg
import pytest

from taskdb.store import Store
from tests.taskdb.lineages import make_url

KINDS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
ADVICE = "PostgreSQL is not installed: apt-get install -y postgresql"


@dataclass
class PostgresServer:
    """Temporary PostgreSQL server. It does not run as root, so root starts it with an unprivileged account.

    `options`: of the server, in addition to those that each one has.
    """

    programs: Path
    folder: Path
    options: str = ""
    numbers: Iterator[int] = field(default_factory=count)

    def run(self, program: str, *arguments: str) -> None:
        account = next((it.pw_uid for it in pwd.getpwall() if it.pw_name == "postgres"), pwd.getpwnam("nobody").pw_uid)
        unprivileged = {"user": account, "extra_groups": []} if os.geteuid() == 0 else {}
        if unprivileged:
            os.chown(self.folder, account, -1)
        done = subprocess.run(
            [self.programs / program, "-D", self.folder / "data", *arguments],
            cwd=self.folder,
            check=False,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **unprivileged,  # type: ignore[call-overload]
        )
        assert done.returncode == 0, f"{program}: {done.stdout}"

    def start(self) -> None:
        self.run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        self.start_again()

    def start_again(self) -> None:
        """Start it with its data."""
        options = f"-c listen_addresses= -c unix_socket_directories={self.folder} -c fsync=off {self.options}"
        self.run("pg_ctl", "-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def create_database(self, template: str = "template1") -> str:
        """URL of a new database: an empty one, or a copy of another to which nobody is connected."""
        name = f"m{next(self.numbers)}"
        with psycopg.connect(host=str(self.folder), user="postgres", autocommit=True) as connection:
            # Copied as files, it is not written to the log of the server as well.
            strategy = "STRATEGY file_copy" if connection.info.server_version >= 150_000 else ""
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} {strategy}".encode())
        return f"postgresql+psycopg://postgres@/{name}?host={self.folder}"

    def open_database(self) -> str:
        """Name of a new database that was opened once, with the tables and views of this version."""
        url = self.create_database()
        Store.open(url).close()
        return url.partition("@/")[2].partition("?")[0]


def find_programs() -> Path | None:
    """Folder of PostgreSQL's programs, or None where it is not installed."""
    path = shutil.which("initdb") or max(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), default="")
    return Path(path).resolve().parent if path else None


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    programs = find_programs()
    if programs is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(ADVICE)
    assert programs is not None
    # A short path, for a socket's name is bounded; and outside pytest's folder, which is closed to others than root.
    with tempfile.TemporaryDirectory(prefix="mergemill-pg-") as folder:
        # Tables that were never analysed seem large, so queries would be compiled for a handful of rows.
        made = PostgresServer(programs, Path(folder), "-c jit=off")
        made.start()
        try:
            yield made
        finally:
            made.run("pg_ctl", "-w", "-m", "immediate", "stop")


@pytest.fixture(scope="session")
def opened(server: PostgresServer) -> str:
    """Name of the PostgreSQL database that those of the tests are copied from."""
    return server.open_database()


@pytest.fixture
def postgresql(server: PostgresServer, opened: str) -> str:
    """URL of a PostgreSQL database without records."""
    return server.create_database(opened)


@pytest.fixture
def empty_postgresql(server: PostgresServer) -> str:
    """URL of a PostgreSQL database that nobody has opened."""
    return server.create_database()


@pytest.fixture(params=KINDS)
def db(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a database of each kind without records."""
    return make_url(tmp_path) if request.param == "sqlite" else str(request.getfixturevalue("postgresql"))


@pytest.fixture(params=KINDS)
def empty_db(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a database of each kind that nobody has opened."""
    return make_url(tmp_path) if request.param == "sqlite" else str(request.getfixturevalue("empty_postgresql"))
