"""Settings: flat names of users, groups of the code."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from core.config import SECRETS, Settings, describe_settings
from core.errors import UsageError
from core.settings.group import iterate_groups, list_given, list_settings, replace_values
from core.settings.machine import SandboxSettings
from core.settings.storage import StorageSettings
from mergemill.cli.options import build_settings, list_names

EXAMPLES: dict[str, tuple[str, str, str, str]] = {
    # Path in the settings -> flat name, and three values that differ from its default.
    "storage.artifacts": ("artifacts", "a", "b", "c"),
    "cluster.address": ("cluster", "ray", "ray://a:1", "ray://b:1"),
    "sandbox.kind": ("sandbox", "local", "bubblewrap", "kubernetes"),
    "sandbox.kubernetes.namespace": ("kubernetes_namespace", "a", "b", "c"),
    "limits.memory_mb": ("memory_mb", "1000", "2000", "3000"),
    "host.base_source": ("base_source", "registry", "debian", "registry"),
    "operation.metrics_port": ("metrics_port", "1", "2", "3"),
    "source.language": ("language", "go", "rust", "ruby"),
    "quota.tasks": ("quota_tasks", "1", "2", "3"),
    "github.app_id": ("github_app_id", "a", "b", "c"),
    "mining.max_files": ("max_files", "1", "2", "3"),
    "llm.context": ("llm_context", "3000", "4000", "5000"),
    "llm.model": ("model", "a", "b", "c"),
    "judge.samples": ("judge_samples", "1", "2", "4"),
    "budget.seconds": ("budget_seconds", "1", "2", "3"),
    "build.max_attempts": ("max_attempts", "1", "2", "3"),
    "verify.repeats": ("repeats", "1", "2", "4"),
    "certify.runs": ("certify_runs", "4", "5", "6"),
    "derive.injected_bugs": ("injected_bugs", "2", "3", "4"),
    "upstream.url": ("upstream", "http://a", "http://b", "http://c"),
    "upstream.concurrency": ("upstream_concurrency", "1", "2", "3"),
    "rollout.turns": ("rollout_turns", "1", "2", "3"),
    "selection.loops": ("select_loops", "1", "3", "4"),
    "simulation.attempts": ("simulate_attempts", "1", "2", "3"),
    "episode.groups": ("episode_groups", "1", "2", "3"),
    "measurement.max_false_pass": ("max_false_pass", "0.2", "0.3", "0.4"),
    "worlds.draw": ("worlds_draw", "1", "2", "3"),
    "worlds.rollouts": ("worlds_rollouts", "1", "2", "3"),
    "explore.rounds": ("explore_rounds", "1", "2", "3"),
}


@pytest.fixture(autouse=True)
def _no_settings_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(settings: Settings, path: str) -> str:
    value: Any = settings
    for name in path.split("."):
        value = getattr(value, name)
    return str(value)


def test_each_group_has_an_example() -> None:
    assert {path.split(".")[0] for path in EXAMPLES} == {name for name, _ in iterate_groups(Settings)}


@pytest.mark.parametrize("path", EXAMPLES)
def test_options_precede_variables_and_these_the_file(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    flat, *values = EXAMPLES[path]
    in_file, in_variable, given = (read(Settings(**{flat: value}), path) for value in values)
    default = read(Settings(), path)
    Path("mergemill.toml").write_text(f'{flat} = "{values[0]}"\n')
    assert read(Settings(), path) == in_file != default
    monkeypatch.setenv(f"MERGEMILL_{flat.upper()}", values[1])
    assert read(Settings(), path) == in_variable != in_file
    assert list_given(Settings()) == {flat}
    assert read(Settings(**{flat: values[2]}), path) == given != in_variable
    monkeypatch.setenv(f"MERGEMILL_{flat.upper()}", "")
    assert read(Settings(), path) == in_file


def test_a_setting_is_in_one_group_and_has_no_other_place() -> None:
    names = [name for _, group in iterate_groups(Settings) for name in list_settings(group)]
    assert sorted(names) == sorted(set(names)) == sorted(list_settings(Settings))
    settings = Settings()
    assert not [name for name in ("db", "github_api", "workers", "test_timeout") if hasattr(settings, name)]


def test_every_setting_is_described() -> None:
    descriptions = describe_settings()
    assert descriptions.keys() == list_settings(Settings).keys()
    assert all(text.endswith((".", "--model.", ")")) for text in descriptions.values())
    assert descriptions["cluster"].startswith("Where the workers run: ")
    assert descriptions["worlds_draw"].startswith("Seed of KMeans")


@pytest.mark.parametrize(
    "given", [{"storage": {"db": "x.db"}}, {"storage": "x"}, {"api": "http://x"}, {"adress": "ray"}]
)
def test_the_names_of_the_code_are_unknown_to_users(given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(ValidationError, match="Extra inputs are not permitted") as raised:
        Settings(**given)
    assert [error["loc"] for error in raised.value.errors()] == [(name,)]
    where = f"--{name}, MERGEMILL_{name.upper()} or {name} in mergemill.toml"
    with pytest.raises(UsageError, match=f"^{where}: extra inputs are not permitted"):
        build_settings(given)


def test_a_table_of_the_file_is_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERGEMILL_STORAGE", '{"db": "other.db"}')
    assert Settings().storage == StorageSettings()
    Path("mergemill.toml").write_text('[github]\napi = "http://x"\n')
    with pytest.raises(UsageError, match=r"github in mergemill\.toml: extra inputs are not permitted"):
        build_settings({})


@pytest.mark.parametrize(
    ("flat", "value", "problem"),
    [
        ("workers", "0", "input should be greater than or equal to 1, not '0'"),
        ("kubernetes_nodes", "zone", "value error, is not a list of KEY=VALUE, not 'zone'"),
        ("llm", "nowhere", r"value error, is not the http\(s\) URL of an API, not 'nowhere'"),
        ("worlds_min_score", "2", "input should be less than or equal to 1, not '2'"),
        ("base_source", "any", "input should be 'auto', 'registry' or 'debian', not 'any'"),
    ],
)
def test_an_error_names_the_setting_as_users_write_it(flat: str, value: str, problem: str) -> None:
    option = flat.replace("_", "-")
    where = f"^--{option}, MERGEMILL_{flat.upper()} or {flat} in mergemill.toml: "
    with pytest.raises(UsageError, match=f"{where}{problem}$"):
        build_settings({flat: value})


def test_a_model_is_needed_where_there_is_an_endpoint() -> None:
    with pytest.raises(UsageError, match=r"^--model, .*: value error, is missing: --llm needs the name of a model$"):
        build_settings({"llm": "http://x"})
    assert build_settings({"llm": "http://x/", "simulator_model": "m"}).llm.url == "http://x"


def test_defaults_have_the_type_of_their_setting() -> None:
    settings = Settings()
    assert json.dumps([settings.budget.seconds, settings.selection.empty_patch]) == "[1800.0, 0.0]"
    assert SandboxSettings() == settings.sandbox


def test_case_does_not_matter() -> None:
    Path("mergemill.toml").write_text("WORKERS = 3\n")
    assert Settings().cluster.workers == Settings(Workers=3).cluster.workers == 3


def test_a_group_alone_takes_both_names() -> None:
    assert (
        SandboxSettings(sandbox="local", kubernetes_nodes="a=b,c=d")
        == Settings(  # type: ignore[call-arg]
            sandbox="local", kubernetes_nodes="a=b,c=d"
        ).sandbox
    )
    assert SandboxSettings.model_validate({"kind": "local"}).kind == "local"
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        SandboxSettings.model_validate({"db": "x.db"})


def test_values_are_replaced_by_their_flat_names() -> None:
    settings = Settings(workers=3)
    other = replace_values(settings, {"db": "x", "kubernetes_context": "c", "cluster": "ray"})
    assert (other.storage.db, other.sandbox.kubernetes.context, other.cluster.address) == ("x", "c", "ray")
    assert other.cluster.workers == 3
    assert list_given(other) == {"workers", "db", "kubernetes_context", "cluster"}
    assert list_given(settings) == {"workers"}
    with pytest.raises(KeyError, match="worker"):
        replace_values(settings, {"worker": 1})


def test_settings_reach_other_processes_as_they_are() -> None:
    settings = Settings(workers=3, github_tokens="a,b", kubernetes_context="c")
    again = pickle.loads(pickle.dumps(settings))  # noqa: S301 - as Ray sends them
    assert again == settings
    assert list_given(again) == list_given(settings) == {"workers", "github_tokens", "kubernetes_context"}


def test_no_group_gives_a_command_a_secret() -> None:
    groups = [group for _, group in iterate_groups(Settings)]
    assert set(list_settings(Settings)) - set(list_names(groups)) == set(SECRETS)


@pytest.mark.parametrize(
    ("given", "share"), [("sample:0", 0.0), ("sample:0.05", 0.05), ("sample:1", 1.0), ("quick", None), ("off", None)]
)
def test_exploits_of_certificates_are_drawn_by_a_share_or_the_same_for_all(given: str, share: float | None) -> None:
    assert Settings(certify_exploits=given).certify.exploit_share == share


@pytest.mark.parametrize("given", ["sample:", "sample:2", "sample:-0.1", "sample:nan", "sample", "some"])
def test_another_word_for_exploits_is_an_error(given: str) -> None:
    with pytest.raises(UsageError, match=r"it is sample:SHARE with a share between 0 and 1, quick, all or off"):
        build_settings({"certify_exploits": given})
