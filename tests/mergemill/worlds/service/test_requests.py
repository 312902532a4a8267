"""Requests that are not served: one clear error each, and nothing else happens. No engine is needed."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from core.config import Settings
from core.errors import InputError, Transient
from mergemill.web.request_guard import MAX_BODY_BYTES
from mergemill.worlds.records import encode_canonical, make_scenario_record, make_world_record
from mergemill.worlds.service.catalog import load_catalog
from taskdb.artifacts import Artifacts, open_artifacts
from taskdb.records.worlds import Scenario, ScenarioCertificate, WorldCertificate, WorldOrigin
from taskdb.store import Store
from tests.world_service import RunningService, serve_worlds
from tests.worlds.programs import SOLUTION, make_scenario, make_world
from worlds.examples.loading import EXAMPLES_FOLDER
from worlds.server.service import WorldServer

TOKEN = "correct horse"


@contextlib.contextmanager
def open_nothing() -> Iterator[WorldServer]:
    raise Transient("no engine answers")
    yield


@pytest.fixture(scope="module")
def service() -> Iterator[RunningService]:
    """A service whose engine is gone."""
    with serve_worlds(open_nothing) as opened:
        yield opened


@pytest.mark.parametrize(
    ("path", "body", "status", "error"),
    [
        ("/reset", {"world": "atlantis"}, 404, "there is no world atlantis"),
        ("/reset", {"world": "library_loans", "scenario": "x"}, 404, "there is no scenario x"),
        ("/reset", {}, 400, "field world is missing"),
        ("/reset", {"world": "library_loans", "sed": 1}, 400, "field sed is not known"),
        ("/reset", {"world": "library_loans", "seed": "1"}, 400, "field seed"),
        ("/reset", {"world": "library_loans", "seed": True}, 400, "field seed"),
        ("/reset", {"world": "library_loans", "mode": "telepathic"}, 400, "field mode"),
        ("/reset", {"world": "library_loans", "reward": "much"}, 400, "field reward"),
        ("/reset", {"world": "library_loans", "max_steps": 0}, 400, "field max_steps"),
        ("/reset", {"world": "library_loans", "episode": "../x"}, 400, "field episode"),
        ("/reset", ["library_loans"], 400, "the body is no JSON object"),
        ("/step", {"episode": "nobody", "tool": "get_book", "arguments": {}}, 404, "there is no episode nobody"),
        ("/step", {"episode": "nobody"}, 400, "give tool and arguments, or action"),
        ("/step", {"episode": "nobody", "tool": "x", "action": "y"}, 400, "give tool and arguments, or action"),
        ("/step", {"episode": "nobody", "tool": "x", "arguments": []}, 400, "field arguments"),
        ("/step", {"tool": "x"}, 400, "field episode is missing"),
        ("/state", {"episode": "nobody"}, 404, "there is no episode nobody"),
        ("/evaluate", {"episode": "nobody"}, 404, "there is no episode nobody"),
        ("/close", {"episode": "nobody"}, 404, "there is no episode nobody"),
        ("/mcp/nobody", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, 404, "there is no episode nobody"),
        ("/mcp", {}, 404, "an address of MCP names an episode"),
        ("/nowhere", {}, 404, "there is no POST /nowhere"),
        ("/worlds/atlantis", None, 404, "there is no world atlantis"),
        ("/reset", None, 405, "Method Not Allowed"),
    ],
)
def test_a_wrong_request_has_one_clear_error(
    service: RunningService, path: str, body: object, status: int, error: str
) -> None:
    given, answer = service.send(path, body)
    assert (given, answer["error"][: len(error)]) == (status, error)
    assert "\n" not in answer["error"]
    assert "reward" not in answer


@pytest.mark.parametrize("raw", [b"{", b"", b"\xff", b"nul", b"[" * 100_000])
def test_malformed_json_is_named(service: RunningService, raw: bytes) -> None:
    status, answer = service.send("/step", raw=raw)
    assert (status, answer["error"][:19]) == (400, "the body is no JSON")


def test_a_body_that_is_too_large_is_refused(service: RunningService) -> None:
    status, answer = service.send("/step", raw=b" " * (MAX_BODY_BYTES + 1))
    assert (status, answer["text"]) == (413, "the body is larger than 8 MB\n")
    status, _ = service.send("/mcp/x", raw=b" " * (MAX_BODY_BYTES + 1))
    assert status == 413


def test_a_body_of_unknown_length_is_refused(service: RunningService) -> None:
    host, _, port = service.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"POST /reset HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert b" 411 " in connection.recv(1000).split(b"\r\n")[0]


def test_a_foreign_host_is_refused(service: RunningService) -> None:
    assert service.send("/worlds", headers={"host": "evil.example"})[0] == 421
    assert service.send("/mcp/x", {}, headers={"host": "evil.example"})[0] == 421


def test_without_a_container_there_is_no_reward(service: RunningService) -> None:
    status, answer = service.send("/reset", {"world": "library_loans"})
    assert status == 503
    assert (answer["reward"], answer["infrastructure_error"]) == (None, "no engine answers")
    assert service.send("/health")[1]["episodes"] == 0
    assert len(service.send("/worlds")[1]["worlds"]) == 3


def test_worlds_are_listed_without_states_checks_and_solutions(service: RunningService) -> None:
    listed = service.send("/worlds")[1]["worlds"]
    assert [world["name"] for world in listed] == ["clinic_rota", "library_loans", "parcel_depot"]
    assert {world["environment"] for world in listed} == {"synthetic"}
    shown = service.send("/worlds/library_loans")[1]
    assert set(shown) == {"name", "environment", "documentation", "tools", "scenarios"}
    assert len(shown["tools"]) == 16
    assert shown["scenarios"] == ["library_loans.busy_morning", "library_loans.school_visit"]


def test_all_but_mcp_needs_the_token() -> None:
    with serve_worlds(open_nothing, token=TOKEN) as service:
        for path in ("/reset", "/step", "/worlds"):
            assert service.send(path, {}, headers={})[0] == 401
            assert service.send(path, {}, headers={"authorization": "Bearer wrong"})[0] == 401
        assert service.send("/worlds")[0] == 200
        assert service.send("/mcp/nobody", {}, headers={})[0] == 404


def test_a_service_without_users_opens_no_conversation() -> None:
    with serve_worlds(open_nothing, make_user=None) as service:
        status, answer = service.send("/reset", {"world": "library_loans", "mode": "conversational"})
        assert (status, answer["error"]) == (400, "this server has no users")


def write_world(folder: Path, program: str) -> Path:
    folder.mkdir()
    (folder / "program.py").write_text(program)
    (folder / "documentation.md").write_text("A store.")
    (folder / "states").mkdir()
    (folder / "states" / "first.json").write_text(json.dumps({}))
    return folder


def test_a_catalog_takes_names_and_folders(tmp_path: Path) -> None:
    catalog = load_catalog(["library_loans", str(EXAMPLES_FOLDER / "clinic_rota")])
    assert list(catalog) == ["library_loans", "clinic_rota"]
    with pytest.raises(InputError, match="two worlds are named library_loans"):
        load_catalog(["library_loans", "library_loans"])
    with pytest.raises(InputError, match="there is no world atlantis"):
        load_catalog(["atlantis"])
    with pytest.raises(InputError, match="has no scenarios"):
        load_catalog([str(write_world(tmp_path / "empty", make_world().program))])
    with pytest.raises(InputError, match="opens-file"):
        load_catalog([str(write_world(tmp_path / "bad", make_world("# add", 'open("x")').program))])


def test_certified_worlds_of_the_database_are_offered(tmp_path: Path) -> None:
    settings = Settings(db=f"sqlite:///{tmp_path}/m.db", store=tmp_path / "store")
    artifacts = open_artifacts(settings.storage)
    with Store.open(settings.storage.db) as store:
        assert len(load_catalog((), settings)) == 3
        record = make_world_record(make_world(), artifacts, origin=WorldOrigin.WRITTEN)
        certified, other = (
            make_scenario_record(replace(make_scenario(), name=f"store.{name}"), record, artifacts)
            for name in ("first", "second")
        )
        store.add(record, certified, other)
        with pytest.raises(InputError, match="store is not certified"):
            load_catalog(["store"], settings)
        store.add(WorldCertificate(parent=record.id, name="store", n_calls=200, gates=()))
        with pytest.raises(InputError, match="store has no scenarios"):
            load_catalog(["store"], settings)
        assert len(load_catalog((), settings)) == 3
        store.add(make_certificate(certified, artifacts))
        offered = load_catalog(["store", "library_loans"], settings)
        assert list(offered) == ["store", "library_loans"]
        assert offered["store"].definition == make_world()
        assert list(offered["store"].scenarios) == ["store.first"]
        assert offered["store"].scenarios["store.first"] == replace(make_scenario(), solution=None)
        assert sorted(load_catalog((), settings)) == ["clinic_rota", "library_loans", "parcel_depot", "store"]
        with pytest.raises(InputError, match="there is no world atlantis"):
            load_catalog(["atlantis"], settings)


def make_certificate(scenario: Scenario, artifacts: Artifacts) -> ScenarioCertificate:
    solution = artifacts.put(encode_canonical([call.to_json() for call in SOLUTION]))
    return ScenarioCertificate(
        parent=scenario.id,
        name=scenario.name,
        solution=solution,
        solution_origin="written",
        n_calls=3,
        n_tools=3,
        n_queries=0,
        n_kept=0,
        mutations=3,
        mutations_noticed=3,
    )
