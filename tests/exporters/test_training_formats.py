"""Rows and files of the formats for training, and the reward module that they ship.

The tables of columns are written down from the source of the readers: verl 0.9 (utils/dataset/rl_dataset.py and
workers/reward_manager/naive.py), SkyRL (train/dataset/dataset.py, skyrl_gym/envs), slime (utils/data.py,
rollout/rm_hub) and NeMo-Gym 0.4 (base_resources_server.py, simple_agent).
"""

from __future__ import annotations

import asyncio
import base64
import importlib
import importlib.util
import io
import json
import sys
import tarfile
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

import exporters
from backends.git import GitRepository
from exporters.rows import TRAINING_TYPES
from taskdb.records import Task
from taskdb.records.oracles import Defect, ReviewOracle
from taskdb.schema.task_columns import EXPORTED, VALUE_TYPES
from tests.containers import make_services
from tests.exporters.tasks import make_task, make_task_with_image
from tests.exporters.test_verifiers import REVIEWS, TEXT, make_review_task
from tests.helpers import TinyRepo
from training_data.parquet import ParquetShards
from verifiers.rewards import grade

TRAINING_FORMATS = ("verl", "skyrl", "slime", "nemo-gym", "verifiers", "inspect")
TASK_COLUMNS = {
    "instance_id": "string",
    "repo": "string",
    "base_commit": "string",
    "created_at": "string",
    "problem_statement": "string",
    "instruction": "string",
    "image": "string",
    "workdir": "string",
    "submission_path": "string",
    "collect_command": "string",
    "verifier": "string",
    "verifier_seconds": "int64",
    "cpus": "int64",
    "memory_mb": "int64",
    "gold_submission": "string",
}
FIRST_FACT_COLUMNS = {
    "kind": "string",
    "change_kind": "string",
    "language": "string",
    "license": "string",
    "tests": "string",
    "family": "string",
    "split": "string",
    "strength": "double",
    "untested_hunks": "string",
    "control_bound": "double",
    "flaky_bound": "double",
    "underspecified": "double",
    "unfair_tests": "double",
    "set_aside": "string",
    "audited": "string",
    "certificate": "string",
    "n_fail_to_pass": "int64",
    "n_pass_to_pass": "int64",
    "test_seconds": "double",
    "statement_tokens": "int64",
    "changed_files": "int64",
    "changed_lines": "int64",
    "difficulty": "string",
}
PARQUET_TYPES = {str: "string", int: "int64", float: "double"}
FURTHER_FACTS = [name for name in EXPORTED if name not in FIRST_FACT_COLUMNS]
FACT_COLUMNS = FIRST_FACT_COLUMNS | {name: PARQUET_TYPES[VALUE_TYPES[name]] for name in FURTHER_FACTS}
"""Columns of earlier versions, then those that were declared since."""
FACTS = {
    "change_kind": "bug-fix",
    "strength": 0.5,
    "untested_hunks": "words.py:2",
    "control_bound": 0.25,
    "flaky_bound": 0.63,
    "underspecified": 0.1,
    "unfair_tests": 0.2,
    "set_aside": None,
    "changed_files": 1,
    "changed_lines": 2,
    "family": "ada__words-1",
    "split": "test",
    "audited": "clean",
    "test_seconds": 0.5,
    "statement_tokens": 18,
    "difficulty": '{"m/s": {"c": 1, "n": 4}}',
}


def export(format_name: str, tasks: list[Task], folder: Path, **facts: Any) -> Path:
    """Export the tasks; each has FACTS, with `facts` instead of some."""
    services = make_services(folder.parent)
    rows = {task.id: FACTS | facts for task in tasks}
    exporters.export_tasks(format_name, tasks, {}, folder, services, facts=rows)
    return folder


def read_struct(path: Path, column: str) -> dict[str, str]:
    return {field.name: str(field.type) for field in pq.read_schema(path).field(column).type}


def load_reward_module(folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("mergemill_reward", folder / "mergemill_reward.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().split("\n") if line]


def test_verl_rows_have_the_columns_that_its_reader_and_its_reward_managers_use(tmp_path: Path) -> None:
    out = export("verl", [make_task(make_services(tmp_path), tmp_path)], tmp_path / "out")
    assert not (out / "train.parquet").exists()
    schema = pq.read_schema(out / "test.parquet")
    assert {field.name: str(field.type) for field in schema} | {"extra_info": ""} == {
        "data_source": "string",
        "prompt": "list<element: struct<role: string, content: string>>",
        "ability": "string",
        "reward_model": "struct<style: string, ground_truth: string>",
        "extra_info": "",
    }
    assert read_struct(out / "test.parquet", "extra_info") == {"index": "int64", **TASK_COLUMNS, **FACT_COLUMNS}
    [row] = pq.read_table(out / "test.parquet").to_pylist()
    assert [message["role"] for message in row["prompt"]] == ["user"]
    info = row["extra_info"]
    assert {name: info[name] for name in FACTS} == FACTS
    assert (info["index"], info["kind"], info["license"]) == (0, "bugfix", "MIT")


def test_skyrl_rows_name_the_environment_that_the_bundle_registers(tmp_path: Path) -> None:
    out = export("skyrl", [make_task(make_services(tmp_path), tmp_path)], tmp_path / "out", split="train")
    schema = pq.read_schema(out / "train.parquet")
    assert {field.name: str(field.type) for field in schema} | {"extra_info": ""} == {
        "data_source": "string",
        "prompt": "list<element: struct<role: string, content: string>>",
        "env_class": "string",
        "reward_spec": "struct<method: string, ground_truth: string>",
        "extra_info": "",
    }
    assert read_struct(out / "train.parquet", "extra_info") == TASK_COLUMNS | FACT_COLUMNS
    [row] = pq.read_table(out / "train.parquet").to_pylist()
    assert f'id="{row["env_class"]}"' in (out / "mergemill_skyrl.py").read_text()


def test_slime_rows_have_prompt_label_and_metadata(tmp_path: Path) -> None:
    out = export("slime", [make_task(make_services(tmp_path), tmp_path)], tmp_path / "out")
    [row] = read_lines(out / "test.jsonl")
    assert row.keys() == {"prompt", "label", "metadata"}
    assert row["metadata"].keys() == TASK_COLUMNS.keys() | FACT_COLUMNS.keys()
    assert (row["label"], row["metadata"]["strength"]) == ("ada__words-1.bugfix", 0.5)


def test_nemo_gym_rows_name_an_agent_and_data_sets_that_its_configuration_has(tmp_path: Path) -> None:
    out = export("nemo-gym", [make_task(make_services(tmp_path), tmp_path)], tmp_path / "out")
    server = out / "resources_servers" / "mergemill"
    [row] = read_lines(server / "data" / "validation.jsonl")
    assert read_lines(server / "data" / "example.jsonl") == [row]
    assert row.keys() == {"responses_create_params", "agent_ref", "verifier_metadata"}
    assert [message["role"] for message in row["responses_create_params"]["input"]] == ["user"]
    assert row["verifier_metadata"].keys() == TASK_COLUMNS.keys() | FACT_COLUMNS.keys()
    config = yaml.safe_load((server / "configs" / "mergemill.yaml").read_text())
    agent = config[row["agent_ref"]["name"]][row["agent_ref"]["type"]]["simple_agent"]
    assert agent["resources_server"]["name"] in config
    assert [(dataset["name"], (out / dataset["jsonl_fpath"]).is_file()) for dataset in agent["datasets"]] == [
        ("validation", True),
        ("example", True),
    ]


def test_a_package_for_verifiers_keeps_the_verifier_out_of_what_a_trace_holds(tmp_path: Path) -> None:
    out = export("verifiers", [make_task(make_services(tmp_path), tmp_path)], tmp_path / "out")
    assert tomllib.loads((out / "pyproject.toml").read_text())["project"]["name"] == "mergemill-tasks"
    package = out / "mergemill_tasks"
    assert '__all__ = ["MergemillTaskset", "load_environment"]' in (package / "__init__.py").read_text()
    [row] = read_lines(package / "tasks.jsonl")
    assert row.keys() == TASK_COLUMNS.keys() | FACT_COLUMNS.keys() | {"prompt"}
    hidden = 'HIDDEN = ("verifier", "gold_submission")'
    assert hidden in (package / "taskset.py").read_text()


@pytest.mark.parametrize("format_name", TRAINING_FORMATS)
def test_equal_tasks_give_equal_bytes_in_the_order_of_their_names(format_name: str, tmp_path: Path) -> None:
    services = make_services(tmp_path)
    tasks = [make_task(services, tmp_path, name=f"ada__words-{n}") for n in (2, 1, 3)]
    first = export(format_name, tasks, tmp_path / "one")
    second = export(format_name, tasks[::-1], tmp_path / "two")
    manifests = [(folder / "manifest.json").read_bytes() for folder in (first, second)]
    assert manifests[0] == manifests[1]
    assert {task["name"] for task in json.loads(manifests[0])["tasks"]} == {task.name for task in tasks}


def test_rows_are_in_the_order_of_names(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    tasks = [make_task(services, tmp_path, name=f"ada__words-{n}") for n in (2, 1, 3)]
    out = export("verl", tasks, tmp_path / "out")
    rows = pq.read_table(out / "test.parquet").to_pylist()
    assert [(row["extra_info"]["index"], row["extra_info"]["instance_id"]) for row in rows] == [
        (n - 1, f"ada__words-{n}.bugfix") for n in (1, 2, 3)
    ]


@pytest.mark.parametrize("format_name", TRAINING_FORMATS)
def test_text_that_utf8_cannot_hold_is_replaced_with_a_note(format_name: str, tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    statement = "nul \0 escape \x1b[0m separator \u2028 lone \ud800 image <image>"
    task = task.model_copy(update={"problem_statement": statement})
    out = export(format_name, [task], tmp_path / "out")
    whole = statement.replace("\ud800", "?")
    if (out / "test.parquet").exists():
        [row] = pq.read_table(out / "test.parquet").to_pylist()
        assert row["extra_info"]["problem_statement"] == whole
    else:
        [path] = [path for path in out.rglob("*.jsonl") if path.stem in {"test", "validation", "tasks"}]
        [row] = read_lines(path)
        metadata = row.get("metadata") or row.get("verifier_metadata") or row
        assert metadata["problem_statement"] == whole
    notes = json.loads((out / "manifest.json").read_text())["tasks"][0]["notes"]
    assert [note.partition(":")[0] for note in notes] == ["problem_statement", "instruction"]
    assert "\\ud800" in (out / "ada__words-1.bugfix" / "record.json").read_text()


def test_a_prompt_says_where_the_repository_is_and_what_to_hand_in(tmp_path: Path) -> None:
    out = export("slime", [make_task(make_services(tmp_path), tmp_path)], tmp_path / "out")
    [row] = read_lines(out / "test.jsonl")
    prompt = row["prompt"][0]["content"]
    assert "`/testbed`" in prompt
    assert "patch" in prompt.partition("Wide gaps")[0]
    assert prompt.rstrip().endswith("instead of 2.")  # text of the repository comes last
    assert row["metadata"]["collect_command"].startswith("out=/logs/artifacts/model.patch;")


def test_the_verifier_of_a_row_is_the_folder_that_grades_in_harbor(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    [row] = read_lines(export("slime", [task], tmp_path / "slime") / "test.jsonl")
    tests = export("harbor", [task], tmp_path / "harbor") / "ada__words-1.bugfix" / "tests"
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(row["metadata"]["verifier"]))) as tar:
        packed = {member.name: file.read() for member in tar if (file := tar.extractfile(member))}
    files = [path for path in tests.rglob("*") if path.is_file()]
    assert packed == {path.relative_to(tests).as_posix(): path.read_bytes() for path in files}
    assert base64.b64decode(row["metadata"]["gold_submission"]) == services.artifacts.get(task.gold_patch)


def test_numbered_shards_and_row_groups_have_bounded_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training_data.parquet.GROUP_BYTES", 1000)
    monkeypatch.setattr("training_data.parquet.SHARD_BYTES", 2000)
    import pyarrow as pa  # noqa: PLC0415 - only here

    with ParquetShards(tmp_path / "data" / "train", pa.schema([("text", pa.string())]), numbered=True) as shards:
        for number in range(10):
            shards.add({"text": f"{number:0>500}"})
    names = sorted(path.name for path in (tmp_path / "data").iterdir())
    assert names == [f"train-{n:05d}-of-00003.parquet" for n in range(3)]
    assert [pq.ParquetFile(tmp_path / "data" / name).num_row_groups for name in names] == [2, 2, 1]
    texts = [row["text"] for name in names for row in pq.read_table(tmp_path / "data" / name).to_pylist()]
    assert texts == [f"{number:0>500}" for number in range(10)]


@pytest.mark.parametrize(
    ("answer", "submission"),
    [
        ("Here it is.\n```diff\ndiff --git a/x b/x\n```\n", "diff --git a/x b/x\n"),
        ("```\nfirst\n```\nbetter:\n```\nsecond\n```", "second\n"),
        ("<think>```diff\nno\n```</think>\nnothing", ""),
        ("<think>\n```diff\nno\n```\n</think>\nnothing", ""),
        ("diff --git a/x b/x\n+a", "diff --git a/x b/x\n+a\n"),
        ('{"findings": []}', '{"findings": []}\n'),
        ("```diff\n+```python\n x\n+```\n```\n", "+```python\n x\n+```\n"),
        ("~~~~diff\n+a\n```\n~~~~\n", "+a\n```\n"),
        ("I could not do it.", ""),
        ("```diff\nunclosed", ""),
        ("", ""),
    ],
)
def test_a_submission_is_the_last_fenced_block_of_an_answer(answer: str, submission: str, tmp_path: Path) -> None:
    out = export("slime", [make_task(make_services(tmp_path), tmp_path)], tmp_path / "out")
    assert load_reward_module(out).extract_submission(answer) == submission


def test_a_failed_evaluation_gives_no_reward(tmp_path: Path) -> None:
    out = export("slime", [make_task(make_services(tmp_path), tmp_path)], tmp_path / "out")
    module = load_reward_module(out)
    [row] = read_lines(out / "test.jsonl")
    assert module.compute_reward(row["metadata"], "", engine="no-such-engine") is None
    assert module.compute_reward(row["metadata"], "", engine="false") is None
    assert module.compute_reward(row["metadata"], None) is None
    with pytest.raises(module.EvaluationFailure, match="no-such-engine"):
        module.require_reward(row["metadata"], "", engine="no-such-engine", attempts=1)


@pytest.mark.docker
def test_the_reward_module_gives_gold_1_and_empty_0_and_nothing_without_a_verdict(tmp_path: Path) -> None:
    out = export("slime", [make_task_with_image(make_services(tmp_path), tmp_path, evaluations=2)], tmp_path / "out")
    module = load_reward_module(out)
    [line] = read_lines(out / "test.jsonl")
    row = line["metadata"]
    gold = module.compute_rewards(row, module.read_gold(row))
    assert (gold["reward"], gold["tampering"], gold["patch_applied"]) == (1, 0, 1)
    assert module.compute_reward(row, "") == 0
    assert module.compute_reward(row, "no patch\n") == 0
    broken = io.BytesIO()
    with tarfile.open(fileobj=broken, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("test.sh"))
    assert module.compute_reward(row | {"verifier": base64.b64encode(broken.getvalue()).decode()}, "") is None


@pytest.mark.docker
def test_the_reward_function_of_each_trainer_grades_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = make_task_with_image(make_services(tmp_path), tmp_path, evaluations=2)
    out = export("verl", [task], tmp_path / "out")
    [row] = pq.read_table(out / "test.parquet").to_pylist()
    spec = importlib.util.spec_from_file_location("custom_module", out / "mergemill_verl.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mergemill_reward", raising=False)
    spec.loader.exec_module(module)
    gold = base64.b64decode(row["extra_info"]["gold_submission"]).decode()
    truth = row["reward_model"]["ground_truth"]
    for answer, reward in ((f"Done.\n```diff\n{gold}```\n", 1), ("I give up.", 0)):
        assert module.compute_score(row["data_source"], answer, truth, extra_info=row["extra_info"]) == reward
    monkeypatch.delitem(sys.modules, "mergemill_reward")


@pytest.mark.parametrize("defects", [(Defect(path="shop.py", first_line=40, last_line=42, claim="Off by one"),), ()])
def test_a_review_holds_its_material_in_the_prompt_and_is_graded_without_an_engine(
    defects: tuple[Defect, ...], tmp_path: Path
) -> None:
    services = make_services(tmp_path)
    task = make_review_task(services, *defects)
    out = export("slime", [task], tmp_path / "out")
    [line] = read_lines(out / "test.jsonl")
    row, prompt = line["metadata"], line["prompt"][0]["content"]
    assert (row["image"], row["workdir"]) == ("", "")
    assert TEXT in prompt
    assert "cart.py" not in prompt, "a path that leads out"
    assert "Off by one" not in prompt
    assert "/review" not in prompt, "there is no such folder"
    module = load_reward_module(out)
    rewards = {name: module.compute_reward(row, review, engine="no-such-engine") for name, review in REVIEWS.items()}
    assert rewards == {name: grade(task, services, review).value for name, review in REVIEWS.items()}
    assert module.compute_reward(row, module.read_gold(row), engine="no-such-engine") == 1
    assert rewards["missing"] == 0


@pytest.mark.parametrize("format_name", TRAINING_FORMATS)
def test_every_copy_of_the_reward_module_grades_reviews_beside_their_trees(format_name: str, tmp_path: Path) -> None:
    services, repo = make_services(tmp_path), TinyRepo(tmp_path / "repo")
    task = make_review_task(services)
    commit = repo.commit("Begin", {"shop.py": TEXT})
    services.clones.trees.keep(task.repo, commit, GitRepository(repo.path))
    assert isinstance(task.oracle, ReviewOracle)
    task = task.model_copy(update={"oracle": task.oracle.model_copy(update={"tree": commit})})
    out = export(format_name, [task], tmp_path / "out")
    [place] = [path.parent for path in out.rglob("mergemill_reward.py")]
    assert (place / "mergemill_review.py").is_file()
    assert len(list(out.glob("*/review.tar.gz"))) == len(list(out.glob("*/tree.tar.gz"))) == 1


def test_the_reward_function_for_slime_grades_samples_and_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = export("slime", [make_review_task(make_services(tmp_path))], tmp_path / "out")
    [line] = read_lines(out / "test.jsonl")
    monkeypatch.syspath_prepend(str(out))
    module = importlib.import_module("mergemill_slime")
    clean, silent = (
        SimpleNamespace(metadata=line["metadata"], response=answer) for answer in ('{"findings": []}', "I give up.")
    )
    assert [asyncio.run(module.custom_rm(None, sample)) for sample in (clean, silent)] == [1, 0]
    assert asyncio.run(module.custom_rm(None, [clean, silent])) == [1, 0]
    for name in ("mergemill_slime", "mergemill_reward"):
        monkeypatch.delitem(sys.modules, name)


def test_a_fence_is_longer_than_those_of_the_files_under_review(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    text = "Usage:\n\n````\nrun\n````"
    task = make_review_task(services)
    assert isinstance(task.oracle, ReviewOracle)
    files = services.artifacts.put_text(json.dumps({"README.md": text}))
    task = task.model_copy(update={"oracle": task.oracle.model_copy(update={"files": files})})
    [line] = read_lines(export("slime", [task], tmp_path / "out") / "test.jsonl")
    assert f"`````\n{text}\n`````\n" in line["prompt"][0]["content"]


def test_the_columns_of_all_training_formats_are_pinned() -> None:
    assert {name: str(kind) for name, kind in TRAINING_TYPES.items()} == TASK_COLUMNS | FACT_COLUMNS
