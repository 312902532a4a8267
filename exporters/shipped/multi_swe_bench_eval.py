"""Evaluate patches on this bundle with Multi-SWE-bench's harness (1.1).

    python evaluate.py --patches patches.gold.jsonl --workdir work

The harness takes image, command and log parser from a class for each repository; here a class serves all rows. The
command unpacks the row's grader. Images are not built, and no repository is cloned. `work/final_report.json` has the
result.
"""

import argparse
import json
import shlex
from functools import cache
from pathlib import Path

from multi_swe_bench.harness.gen_report import CliArgs as ReportBuilder
from multi_swe_bench.harness.image import Image
from multi_swe_bench.harness.instance import Instance
from multi_swe_bench.harness.run_evaluation import CliArgs
from multi_swe_bench.harness.test_result import TestResult

HERE = Path(__file__).resolve().parent
CHUNK = 100_000
"""Characters in an argument of the command; the kernel allows 131,072."""
UNPACK = (
    'mkdir -m 700 /verifier && printf %s "$@" | base64 -d | tar -xz -C /verifier'
    " && printf '%s\\n' 'chmod 600 /home/fix.patch; cp /home/fix.patch /verifier/model.patch; cd /testbed;"
    " python3 -I -S -B /verifier/apply_patch.py /verifier/model.patch || exit 0; cd /;"
    " python3 -I -S /verifier/grade.py --lines /verifier/lines;"
    ' sed "s/^/mergemill: /" /verifier/lines\' > /verifier/run.sh && exec bash /verifier/run.sh'
)
"""Run as root.

The last process replaces the process whose arguments hold the grader, which the tests' user could read.
"""


@cache
def read_graders():
    """Return (org, repo, number) -> row of graders.jsonl."""
    with (HERE / "graders.jsonl").open(encoding="ascii") as lines:
        rows = [json.loads(line) for line in lines]
    return {(row["org"], row["repo"], row["number"]): row for row in rows}


class RowImage(Image):
    """The image of a row; it is there or pulled, never built."""

    def __init__(self, pr, config):
        self._pr, self._config = pr, config

    @property
    def pr(self):
        return self._pr

    @property
    def config(self):
        return self._config

    def dependency(self):
        return self.image_full_name()

    def image_full_name(self):
        return read_graders()[self.pr.org, self.pr.repo, self.pr.number]["image"]

    def workdir(self):
        return f"pr-{self.pr.number}"


class RowInstance(Instance):
    """A row: its image, its command and its log parser."""

    def __init__(self, pr, config):
        self._pr, self._config = pr, config

    @property
    def pr(self):
        return self._pr

    def dependency(self):
        return RowImage(self._pr, self._config)

    def fix_patch_run(self, fix_patch_run_cmd=""):
        grader = read_graders()[self.pr.org, self.pr.repo, self.pr.number]["grader"]
        chunks = [grader[n : n + CHUNK] for n in range(0, len(grader), CHUNK)]
        return shlex.join(["bash", "-c", UNPACK, "mergemill", *chunks])

    def parse_log(self, test_log):
        outcomes = {"PASSED": set(), "FAILED": set()}
        for line in test_log.split("\n"):
            if line.startswith("mergemill: "):
                status, _, test = line[len("mergemill: ") :].partition(" ")
                outcomes[status].add(test)
        passed, failed = outcomes["PASSED"], outcomes["FAILED"]
        return TestResult(len(passed), len(failed), 0, passed, failed, set())


def main():
    """Register the rows, run their containers and build the report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--patches", default=str(HERE / "patches.gold.jsonl"))
    parser.add_argument("--workdir", required=True)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    for org, repo, _ in read_graders():
        Instance.register(org, repo)(RowInstance)
    work = Path(options.workdir).resolve()
    for name in ("repos", "logs", "runs"):
        (work / name).mkdir(parents=True, exist_ok=True)
    shared = {
        "workdir": work / "runs",
        "output_dir": work,
        "specifics": None,
        "skips": None,
        "dataset_files": [str(HERE / "tasks.jsonl")],
        "max_workers": options.workers,
        "log_dir": work / "logs",
        "log_level": "INFO",
        "log_to_console": False,
    }
    CliArgs(
        **shared,
        mode="instance_only",
        patch_files=[options.patches],
        force_build=False,
        repo_dir=work / "repos",
        need_clone=False,
        global_env=None,
        clear_env=True,
        stop_on_error=False,
        max_workers_build_image=1,
        max_workers_run_instance=options.workers,
        fix_patch_run_cmd="",
        human_mode=True,
    ).run()
    ReportBuilder(**shared, mode="evaluation", raw_dataset_files=None).run()


if __name__ == "__main__":
    main()
