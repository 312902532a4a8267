"""Bundles in the tools that read them (`consumers`): the gold submission must earn 1, an empty one 0."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from exporters import FORMATS
from tests.cli import run_mergemill
from tests.exporters import consumer_programs as programs
from tests.exporters.consumers import CONSUMERS, install, install_bundle, run_command, run_program
from tests.sample import make_sample

pytestmark = [pytest.mark.slow, pytest.mark.docker, pytest.mark.timeout(1800)]

LIST_FORMATS = ("swebench", "swe-smith", "multi-swe-bench")
"""Formats without reviews."""

DATASETS_RUN = """\
import json, sys
from datasets import load_dataset
folder = sys.argv[1]
sets = {
    "huggingface": load_dataset(folder + "/huggingface"),
    "verl": load_dataset("parquet", data_files=folder + "/verl/*.parquet"),
    "skyrl": load_dataset("parquet", data_files=folder + "/skyrl/*.parquet"),
    "slime": load_dataset("json", data_files=folder + "/slime/*.jsonl"),
    "nemo-gym": load_dataset("json", data_files=folder + "/nemo-gym/resources_servers/mergemill/data/example.jsonl"),
    "swebench": load_dataset("json", data_files=folder + "/swebench/tasks.jsonl"),
    "swebench folder": load_dataset(folder + "/swebench"),
    "swe-smith": load_dataset("json", data_files=folder + "/swe-smith/tasks.jsonl"),
    "multi-swe-bench": load_dataset("json", data_files=folder + "/multi-swe-bench/tasks.jsonl"),
}
print(json.dumps({name: sum(len(split) for split in found.values()) for name, found in sets.items()}))
"""


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a bundle of each format, exported from the sample's two bug fixes and their reviews."""
    folder = tmp_path_factory.mktemp("bundles")
    make_sample(folder / "greet")
    ran = run_mergemill("run", "git:greet", "--kind", "bugfix,review", cwd=folder)
    assert ran.exit_code == 0, ran.stderr
    for format_name in FORMATS:
        exported = run_mergemill("export", "--format", format_name, "--out", format_name, cwd=folder)
        assert exported.exit_code == 0, exported.stderr
    return folder


def list_names(bundle: Path) -> list[str]:
    return [task["name"] for task in json.loads((bundle / "manifest.json").read_text())["tasks"]]


def test_every_format_has_a_consumer() -> None:
    assert list(CONSUMERS) == list(FORMATS)


@pytest.mark.parametrize("format_name", FORMATS)
def test_the_consumer_of_a_format_rewards_gold_alone(format_name: str, bundles: Path, tmp_path: Path) -> None:
    names = list_names(bundles / format_name)
    kinds = {name.split(".")[1].rstrip("-0123456789") for name in names}
    assert kinds == {"bugfix", *([] if format_name in LIST_FORMATS else ["review"])}
    assert CONSUMERS[format_name].grade(bundles / format_name, tmp_path) == dict.fromkeys(names, (1, 0))


def test_inspect_grades_an_answer_without_a_sandbox(bundles: Path, tmp_path: Path) -> None:
    command = install("inspect-ai==0.3.285", sys.executable)
    site = install_bundle(bundles / "inspect", tmp_path / "site")
    result = run_program(command, programs.INSPECT, "none", cwd=tmp_path, path=site)
    assert result == dict.fromkeys(list_names(bundles / "inspect"), (1, 0))


def test_a_task_of_verifiers_has_no_hidden_columns(bundles: Path, tmp_path: Path) -> None:
    command = install("verifiers==0.4.0", sys.executable)
    site = install_bundle(bundles / "verifiers", tmp_path / "site")
    program = (
        "from mergemill_tasks import load_environment; env = load_environment(); tasks = list(env.taskset);"
        "hidden = {'verifier', 'gold_submission'};"
        "assert not any({*task.data.model_dump(), *task.data.facts} & hidden for task in tasks);"
        "print(len(tasks))"
    )
    assert run_command(command, "python", "-c", program, cwd=tmp_path, path=site).split() == [
        str(len(list_names(bundles / "verifiers")))
    ]


def test_a_sample_of_inspect_has_no_hidden_columns(bundles: Path, tmp_path: Path) -> None:
    command = install("inspect-ai==0.3.285", sys.executable)
    site = install_bundle(bundles / "inspect", tmp_path / "site")
    program = (
        "from mergemill_inspect.tasks import mergemill; samples = list(mergemill().dataset);"
        "assert all(sample.metadata['kind'] in ('bugfix', 'review') for sample in samples);"
        "assert not any({*sample.metadata} & {'verifier', 'gold_submission'} for sample in samples);"
        "print(len(samples))"
    )
    assert run_command(command, "python", "-c", program, cwd=tmp_path, path=site).split() == [
        str(len(list_names(bundles / "inspect")))
    ]


def test_datasets_loads_the_rows_of_every_format_that_has_some(bundles: Path, tmp_path: Path) -> None:
    command = install("datasets==5.2.0", sys.executable)
    output = run_command(command, "python", "-c", DATASETS_RUN, bundles, cwd=tmp_path)
    counts = json.loads(output.splitlines()[-1])
    expected = {name: len(list_names(bundles / name.split()[0])) for name in counts}
    assert counts == expected | {"nemo-gym": min(5, expected["nemo-gym"])}


INSPECT_REVIEW = """\
import json
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from mergemill_inspect.mergemill_reward import read_gold
from mergemill_inspect.tasks import iterate_rows, mergemill
golds = [f"```json\\n{read_gold(row).decode()}```" for row in iterate_rows() if row["kind"] == "review"]
outputs = [ModelOutput.from_content("mockllm", gold) for gold in golds]
for output in outputs:
    output.usage = ModelUsage()  # else tokens are counted by a vocabulary from the network
model = get_model("mockllm/model", custom_outputs=outputs)
[log] = eval(mergemill(kinds="review", sandbox="mergemill_engine"), model=model, display="none", max_samples=1)
assert log.status == "success", log.error
print(json.dumps([sample.scores["verify_submission"].value for sample in log.samples]))
"""


def test_the_package_for_inspect_takes_the_findings_of_a_review_from_an_answer(bundles: Path, tmp_path: Path) -> None:
    command = install("inspect-ai==0.3.285", sys.executable)
    site = install_bundle(bundles / "inspect", tmp_path / "site")
    output = run_command(command, "python", "-c", INSPECT_REVIEW, cwd=tmp_path, path=site)
    assert set(json.loads(output.splitlines()[-1])) == {1}
