"""Rows and files of SWE-bench's parquet, SWE-smith, Inspect and Hugging Face."""

from __future__ import annotations

import ast
import base64
import io
import json
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import exporters
from core.errors import InputError
from exporters.task_files import compute_timeout
from taskdb.records import FailureKind, Task
from tests.containers import make_services
from tests.exporters.tasks import BASE, WORDS_RIGHT, make_certificate, make_task, make_task_with_image
from tests.exporters.test_formats import SWEBENCH_FIELDS, apply
from tests.exporters.test_training_formats import FACT_COLUMNS, FACTS, TASK_COLUMNS, export, read_lines
from tests.helpers import TinyRepo
from training_data.parquet import build_table, measure_text

SWE_SMITH_FIELDS = {"instance_id", "repo", "patch", "FAIL_TO_PASS", "PASS_TO_PASS", "image_name", "problem_statement"}
"""What SWE-smith 0.0.9 reads: harness/eval.py, harness/grading.py, profiles/base.py and its data set on the hub."""


def test_swebench_rows_have_facts_and_lie_in_parquet_too(tmp_path: Path) -> None:
    out = export("swebench", [make_task(make_services(tmp_path), tmp_path)], tmp_path / "out")
    [line] = read_lines(out / "tasks.jsonl")
    assert {name: line[name] for name in FACTS} == FACTS
    columns = {field.name: str(field.type) for field in pq.read_schema(out / "tasks.parquet")}
    extra = {"version", "setup_patch", "hints_text"}
    assert columns == dict.fromkeys(SWEBENCH_FIELDS | extra, "string") | FACT_COLUMNS
    assert pq.read_table(out / "tasks.parquet").to_pylist() == [line]


def test_a_bundle_for_swebench_names_its_files_for_readers_of_data_sets(tmp_path: Path) -> None:
    out = export("swebench", [make_task(make_services(tmp_path), tmp_path)], tmp_path / "out")
    [config] = yaml.safe_load((out / "README.md").read_text().split("---\n")[1])["configs"]
    [split] = config["data_files"]
    assert split["split"] == "test"
    assert [path.name for path in out.glob(split["path"])] == ["tasks.parquet"]


def test_the_bug_of_a_swe_smith_row_is_the_reverse_of_the_gold_patch(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    out = export("swe-smith", [task], tmp_path / "out")
    [row] = read_lines(out / "tasks.jsonl")
    assert row.keys() == SWE_SMITH_FIELDS | FACT_COLUMNS.keys() | {
        "source_repo",
        "base_commit",
        "created_at",
        "test_patch",
        "grader",
        "timeout",
    }
    assert {name: row[name] for name in FACTS} == FACTS
    repo = TinyRepo(tmp_path / "ada__words-1")
    repo.write({"words.py": WORDS_RIGHT})
    apply(repo, row["patch"])
    assert (repo.path / "words.py").read_text() == BASE["words.py"]
    subprocess.run(["git", "apply", "-R", "-"], cwd=repo.path, input=row["patch"].encode(), check=True)
    assert (repo.path / "words.py").read_text() == WORDS_RIGHT
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(row["grader"]))) as tar:
        assert {member.name for member in tar} == {
            "eval.sh",
            "grade.py",
            "apply_patch.py",
            "task.json",
            "controls.json",
            "guest/controls/blind.py",
            "guest/controls/choices.py",
            "guest/controls/texts.py",
            "guest/reports/canaries.py",
            "guest/reports/entries.py",
            "guest/reports/junit.py",
        }
    gold = read_lines(out / "predictions.gold.jsonl")
    assert [row["model_patch"].encode() for row in gold] == [services.artifacts.get(task.gold_patch)]


def test_the_bug_of_a_row_does_not_depend_on_the_users_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text(
        "[diff]\n\texternal = false\n\tnoprefix = true\n\tcontext = 0\n[color]\n\tui = always\n"
    )
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    before = read_lines(export("swe-smith", [task], tmp_path / "one") / "tasks.jsonl")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    assert read_lines(export("swe-smith", [task], tmp_path / "two") / "tasks.jsonl") == before


@pytest.mark.parametrize("format_name", ["swe-smith", "multi-swe-bench"])
def test_rows_with_patches_as_text_leave_out_other_encodings(format_name: str, tmp_path: Path) -> None:
    services = make_services(tmp_path)
    good = make_task(services, tmp_path)
    bad = make_task(services, tmp_path, name="ada__words-2")
    bad = bad.model_copy(update={"test_patch": services.artifacts.put(b"diff --git a/x b/x\n+\xff\n")})
    out = export(format_name, [good, bad], tmp_path / "out")
    assert len(read_lines(out / "tasks.jsonl")) == 1
    notes = {task["name"]: task["notes"] for task in json.loads((out / "manifest.json").read_text())["tasks"]}
    assert notes[bad.name] == ["skipped: a patch is not UTF-8, which this format cannot carry"]
    with pytest.raises(InputError, match="UTF-8"):
        export(format_name, [bad], tmp_path / "other")


def test_a_package_for_inspect_has_an_entry_point_and_hides_the_verifier(tmp_path: Path) -> None:
    out = export("inspect", [make_task(make_services(tmp_path), tmp_path)], tmp_path / "out")
    project = tomllib.loads((out / "pyproject.toml").read_text())["project"]
    assert project["entry-points"] == {"inspect_ai": {"mergemill_inspect": "mergemill_inspect.tasks"}}
    [row] = read_lines(out / "mergemill_inspect" / "tasks.jsonl")
    assert row.keys() == TASK_COLUMNS.keys() | FACT_COLUMNS.keys() | {"prompt"}
    hidden = 'HIDDEN = ("prompt", "instruction", "verifier", "gold_submission", "collect_command")'
    assert hidden in (out / "mergemill_inspect" / "tasks.py").read_text()


def test_a_data_set_folder_has_numbered_files_by_split_and_a_card(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    tasks = [make_task(services, tmp_path, name=f"ada__words-{n}") for n in (1, 2, 3)]
    rows = {task.id: FACTS | {"split": split} for task, split in zip(tasks, ("train", "test", "train"), strict=True)}
    certificates = {tasks[0].id: make_certificate(tasks[0])}
    out = tmp_path / "out"
    exporters.export_tasks("huggingface", tasks, certificates, out, services, facts=rows)
    names = sorted(path.name for path in (out / "data").iterdir())
    assert names == ["test-00000-of-00001.parquet", "train-00000-of-00001.parquet"]
    train = pq.read_table(out / "data" / names[1])
    assert {field.name: str(field.type) for field in train.schema} == {
        **TASK_COLUMNS,
        **FACT_COLUMNS,
        **dict.fromkeys(("hints_text", "version", "prompt", "patch", "test_patch", "setup_patch"), "string"),
        "image_digest": "string",
        "FAIL_TO_PASS": "list<element: string>",
        "PASS_TO_PASS": "list<element: string>",
    }
    assert train.column("instance_id").to_pylist() == ["ada__words-1.bugfix", "ada__words-3.bugfix"]
    card = (out / "README.md").read_text()
    front = yaml.safe_load(card.split("---\n")[1])
    assert (front["license"], front["size_categories"]) == ("mit", ["n<1K"])
    assert front["configs"][0]["data_files"] == [
        {"split": "train", "path": "data/train-*.parquet"},
        {"split": "test", "path": "data/test-*.parquet"},
    ]
    assert "3 tasks of 1 repository" in card
    assert "| bugfix | 2 | 1 |" in card
    assert "| `strength` | 3 rows: mean 0.500, 0.500 to 0.500 |" in card
    assert "1 of 3. With a certificate" in card
    assert "A model wrote the tests of 0 of 3:" in card


@pytest.mark.parametrize(
    ("gradings", "flaky_bound", "shown"),
    [
        (3, 0.5615, "gold earned 1 in 3 of 3 gradings"),
        (60, 0.0602, "gold earned 1 in 60 of 60 gradings, and fails in a row's with a probability of at most 0.06"),
    ],
)
def test_a_card_shows_the_gradings_of_gold_and_no_rounded_0(
    gradings: int, flaky_bound: float, shown: str, tmp_path: Path
) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    facts = {task.id: FACTS | {"control_bound": 0.0003, "flaky_bound": flaky_bound, "unfair_tests": 0.81}}
    certificate = make_certificate(task).model_copy(update={"gold": (1.0,) * gradings})
    out = tmp_path / "out"
    exporters.export_tasks("huggingface", [task], {task.id: certificate}, out, services, facts=facts)
    card = (out / "README.md").read_text()
    assert "| `control_bound` | 1 rows: mean 0.0003, 0.0003 to 0.0003 |" in card
    assert f"| `flaky_bound` | {shown} |" in card
    assert "| `unfair_tests` | 1 rows: 0.810 to 0.810 |" in card
    certified = exporters.export_tasks("huggingface", [task], {}, tmp_path / "plain", services, facts=facts)
    assert certified is not None
    assert "| `flaky_bound` | not known for any row |" in (tmp_path / "plain" / "README.md").read_text()


def test_a_card_names_unknown_licences_other_and_keeps_its_tables(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path).model_copy(
        update={"license": "Weird | licence\n---\n# title", "language": "c|"}
    )
    out = export("huggingface", [task], tmp_path / "out")
    card = (out / "README.md").read_text()
    assert yaml.safe_load(card.split("---\n")[1])["license"] == "other"
    assert "| Weird / licence --- # title | 1 |" in card
    assert "| c/ | 1 |" in card


def test_a_binary_patch_is_replaced_in_a_data_set_with_a_note(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    content = b"diff --git a/x b/x\n+\xff\n"
    task = make_task(services, tmp_path).model_copy(update={"test_patch": services.artifacts.put(content)})
    out = export("huggingface", [task], tmp_path / "out")
    [row] = pq.read_table(out / "data" / "test-00000-of-00001.parquet").to_pylist()
    assert row["test_patch"] == content.decode(errors="replace")
    assert json.loads((out / "manifest.json").read_text())["tasks"][0]["notes"] == [
        "test_patch: not UTF-8, so bytes are replaced in this column; the task's folder has the patch"
    ]
    assert (out / "ada__words-1.bugfix" / "test.patch").read_bytes() == content


MULTI_SWE_BENCH_FIELDS = {
    "org",
    "repo",
    "number",
    "tag",
    "lang",
    "state",
    "title",
    "body",
    "base",
    "resolved_issues",
    "fix_patch",
    "test_patch",
    "fixed_tests",
    "p2p_tests",
    "f2p_tests",
    "s2p_tests",
    "n2p_tests",
    "run_result",
    "test_patch_result",
    "fix_patch_result",
}
"""What Multi-SWE-bench 1.1.2 reads: harness/pull_request.py, harness/dataset.py and harness/report.py."""


def test_multi_swe_bench_rows_have_results_that_agree_with_their_lists(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    absent = ("tests/test_words.py::test_new", FailureKind.ABSENT)
    task = task.model_copy(update={"FAIL_TO_PASS": (*task.FAIL_TO_PASS, absent)})
    out = export("multi-swe-bench", [task], tmp_path / "out")
    [row] = read_lines(out / "tasks.jsonl")
    assert row.keys() == MULTI_SWE_BENCH_FIELDS | FACT_COLUMNS.keys() | {"instance_id", "image_name"}
    assert (row["org"], row["repo"], row["number"], row["title"]) == ("ada", "words", 1, "Wide gaps are miscounted")
    assert row["n2p_tests"] == {absent[0]: {"run": "NONE", "test": "NONE", "fix": "PASS"}}
    assert row["fixed_tests"] == row["f2p_tests"] | row["n2p_tests"]
    assert (len(row["f2p_tests"]), len(row["p2p_tests"])) == (2, 2)
    for name, passed, failed in (("run", 2, 0), ("test_patch", 2, 2), ("fix_patch", 5, 0)):
        result = row[f"{name}_result"]
        assert (result["passed_count"], result["failed_count"], result["skipped_count"]) == (passed, failed, 0)
        assert (len(result["passed_tests"]), len(result["failed_tests"])) == (passed, failed)
    [grader] = read_lines(out / "graders.jsonl")
    assert (grader["org"], grader["repo"], grader["number"], grader["image"]) == ("ada", "words", 1, task.image)
    assert read_lines(out / "patches.gold.jsonl")[0]["fix_patch"] == row["fix_patch"]


@pytest.mark.docker
def test_the_command_for_multi_swe_bench_applies_a_patch_of_another_form(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task_with_image(services, tmp_path, evaluations=2)
    [row] = read_lines(export("multi-swe-bench", [task], tmp_path / "out") / "graders.jsonl")
    program = ast.parse((Path(exporters.__file__).parent / "shipped" / "multi_swe_bench_eval.py").read_text())
    [unpack] = [node.value for node in program.body if isinstance(node, ast.Assign) and node.targets[0].id == "UNPACK"]
    result = services.sandbox.run(
        task.image,
        ["bash", "-c", ast.literal_eval(unpack), "mergemill", row["grader"]],
        limits=services.test_limits(),
        files={"/home/fix.patch": services.artifacts.get(task.gold_patch).rstrip(b"\n")},
    )
    assert "applied after: added missing last line feed\n" in result.output
    printed = [line for line in result.output.splitlines() if line.startswith("mergemill: ")]
    assert [line.split()[1] for line in printed] == ["PASSED"] * 4, result.output


def test_rows_of_one_pull_request_have_numbers_of_their_own(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    others = [task.model_copy(update={"name": f"ada__words-1.{kind}"}) for kind in ("feature", "injected-1")]
    released = task.model_copy(update={"name": "ada__words-1.2.3.bugfix"})
    out = export("multi-swe-bench", [task, *others, released], tmp_path / "out")
    numbers = [row["number"] for row in read_lines(out / "tasks.jsonl")]
    assert len(set(numbers)) == 4
    assert [number for number in numbers if number < 1_000_000_000] == [1]
    alone = export("multi-swe-bench", [released], tmp_path / "alone")
    assert read_lines(alone / "tasks.jsonl")[0]["number"] >= 1_000_000_000


def test_lists_that_several_rows_share_are_converted_once_and_stay_the_same() -> None:
    schema = pa.schema([("name", pa.string()), ("tests", pa.list_(pa.string())), ("n", pa.int64())])
    tests = [f"tests/test_{number}.py::test" for number in range(300)]
    lists = [tests, list(tests), [], None, ["\u2028 \0"], tests, []]
    rows = [{"name": str(number), "tests": names, "n": number} for number, names in enumerate(lists)]
    table = build_table([*rows, {"name": "no tests"}], schema)
    assert table.equals(pa.Table.from_pylist([*rows, {"name": "no tests"}], schema=schema))
    assert table.to_pylist()[:-1] == rows


def test_the_size_of_a_row_is_that_of_all_its_texts() -> None:
    assert measure_text({"a": "xy", "b": ["abc", "d"], "c": [{"role": "user"}], "d": 1, "e": b"12", "f": []}) == 20


def test_the_time_for_a_swe_smith_row_grows_with_the_evaluations(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    many = Task(**task.model_dump() | {"evaluations": 12, "name": f"{task.name}-many"})
    out = export("swe-smith", [task, many], tmp_path / "out")
    rows = {row["instance_id"]: row["timeout"] for row in read_lines(out / "tasks.jsonl")}
    assert rows["ada__words-1.bugfix-many"] > 12 * compute_timeout(task) > rows["ada__words-1.bugfix"]
