"""Evaluate predictions on this bundle with SWE-smith's harness (0.0.9).

    python evaluate.py --predictions gold --run-id gold
    python evaluate.py --predictions my-predictions.jsonl --run-id mine

The harness takes image, test command and log parser from a profile of the repository; here every row has its own. Its
containers start from the tree with the bug, so no branch is checked out.
"""

import argparse
import json
from pathlib import Path

from swesmith.harness import eval as harness
from swesmith.profiles import registry
from swesmith.profiles.base import RepoProfile

HERE = Path(__file__).resolve().parent
SCRIPT = """\
{ set +x; } 2> /dev/null
folder="$(mktemp -d)"
base64 -d << 'END_OF_ARCHIVE' | tar -xz -C "$folder"
%s
END_OF_ARCHIVE
[ ! -f /eval.sh ] || chmod 600 /eval.sh
python3 -I -S "$folder/grade.py" --lines "$folder/lines"
[ ! -f "$folder/lines" ] || sed 's/^/mergemill: /' "$folder/lines"
rm -rf "$folder"
trap 'sleep 2' EXIT
set -x"""
"""Without the pause at the end the engine sometimes drops the last line, and the harness then finds no results."""


class RowProfile(RepoProfile):
    """Profile of a row; `register_row` makes a subclass for each."""

    row = {}

    @property
    def image_name(self):
        return self.row["image_name"]

    @property
    def repo_name(self):
        return self.row["repo"].partition("/")[2]

    @property
    def mirror_name(self):
        return self.row["repo"]

    @property
    def dockerfile(self):
        return (HERE / self.row["instance_id"] / "Dockerfile").read_text()

    def _is_repo_private(self):
        return False

    def pull_image(self):
        """Use the engine's image; the container's creation fails where there is none."""

    def get_test_files(self, instance):
        return [], []

    def get_test_cmd(self, instance, f2p_only=False):
        text = self.row["grader"]
        return SCRIPT % "\n".join(text[n : n + 76] for n in range(0, len(text), 76)), []

    def log_parser(self, log):
        statuses = {}
        for line in log.split("\n"):
            if line.startswith("mergemill: "):
                status, _, test = line.removeprefix("mergemill: ").partition(" ")
                statuses[test] = status
        return statuses


def register_row(row):
    """Register a profile for a row."""
    name = "Row_" + row["instance_id"]
    registry.register_profile(
        type(name, (RowProfile,), {"row": row, "timeout": row["timeout"], "timeout_ref": row["timeout"]})
    )


def main():
    """Register the rows and run the harness."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--predictions", default="gold", help="`gold`, or a file of predictions")
    parser.add_argument("--run-id", required=True)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    tasks = HERE / "tasks.jsonl"
    with tasks.open(encoding="ascii") as lines:
        for line in lines:
            register_row(json.loads(line))
    run = harness.run_patch_in_container

    def run_without_branch(*words, commit=None, **options):
        return run(*words, **options)

    harness.run_patch_in_container = run_without_branch
    predictions = options.predictions if options.predictions == "gold" else str(Path(options.predictions).resolve())
    harness.main(run_id=options.run_id, workers=options.workers, predictions_path=predictions, dataset_path=str(tasks))


if __name__ == "__main__":
    main()
