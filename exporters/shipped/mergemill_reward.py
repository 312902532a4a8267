"""Reward of a submission, from the verifier that its row carries. Standard library and the `docker` command only.

    from mergemill_reward import compute_reward
    reward = compute_reward(row, submission)          # a number from 0 to 1; None: the evaluation failed, there is none

A row is a mapping with `image`, `verifier` (base64 of a .tar.gz, the folder /tests), `submission_path` and
`verifier_seconds`. The verifier runs as root in a fresh container of the image without network; the code under test
runs there as an ordinary user without access to the verifier. Files are copied, nothing is mounted, so the engine may
be a remote engine (DOCKER_HOST). None is not 0: leave the rollout out of the batch, or grade it again.

A row without an image is a review. Nothing of it is executed: its findings are compared with the known defects here.
"""

import base64
import importlib.util
import io
import json
import logging
import math
import os
import re
import subprocess
import tarfile
import time

VERIFIER_FOLDER = "tests"
REWARD_PATH = "/logs/verifier/reward.json"
GRACE_SECONDS = 60
"""Time for the container's start, beside the verifier's own limit."""
MAX_SUBMISSION_BYTES = 64 * 1024 * 1024
_FENCE = re.compile(r"^(?P<fence>`{3,}|~{3,})[^\n`]*\n(?P<body>.*?)^(?P=fence)[ \t]*$", re.DOTALL | re.MULTILINE)

log = logging.getLogger("mergemill_reward")


class EvaluationFailure(Exception):  # noqa: N818 - not an error of the submission
    """The evaluation itself failed, so there is no reward."""


def compute_reward(row, submission, engine=None):
    """Return the reward of a submission, or None when the evaluation itself failed.

    Args:
        row: a row of the bundle.
        submission: text or bytes of the content that the agent hands in: a patch, or the JSON of a review. Empty:
            nothing. None: the work was not collected, which gives None.
        engine: the docker command; default: the variable MERGEMILL_DOCKER, else `docker`.
    """
    try:
        return compute_rewards(row, submission, engine)["reward"]
    except EvaluationFailure as failure:
        log.warning("%s: no reward: %s", row.get("instance_id", row["image"]), failure)
        return None


def require_reward(row, submission, engine=None, attempts=3):
    """Return the reward of a submission, evaluated again after a failure, for callers that cannot do without a number.

    Raises:
        EvaluationFailure: each of the attempts failed.
    """
    for attempt in range(1, attempts + 1):
        try:
            return compute_rewards(row, submission, engine)["reward"]
        except EvaluationFailure as failure:
            log.warning("%s: attempt %d: %s", row.get("instance_id", row["image"]), attempt, failure)
            if attempt == attempts:
                raise
            time.sleep(5 * attempt)
    raise EvaluationFailure("there was no attempt")


def compute_rewards(row, submission, engine=None):
    """Return all numbers that the verifier reports, `reward` among them.

    Raises:
        EvaluationFailure: the evaluation itself failed.
    """
    if submission is None:
        raise EvaluationFailure("the agent's work was not collected")
    content = submission if isinstance(submission, bytes) else _encode(submission)
    if len(content) > MAX_SUBMISSION_BYTES:
        content = b"too large\n"  # cannot be applied or parsed, so it earns 0
    if not row["image"]:
        return _grade_review(row, content)
    with _Container(row, engine or os.environ.get("MERGEMILL_DOCKER", "docker")) as container:
        container.copy_in(_pack(row, content))
        output = container.run(float(row["verifier_seconds"]) + GRACE_SECONDS)
        return _parse_rewards(container.copy_out(REWARD_PATH), output)


def extract_submission(text):
    """Return the submission in a model's answer: the last fenced block, else an answer that is a patch or JSON.

    An answer with neither hands in nothing: the result is empty.
    """
    answer = text.rpartition("</think>")[2]
    blocks = [match.group("body") for match in _FENCE.finditer(answer)]
    block = blocks[-1] if blocks else answer.lstrip()
    if not blocks and not block.startswith(("diff --git ", "--- ", "{")):
        return ""
    return block if block.endswith("\n") or not block else block + "\n"


def read_gold(row):
    """Return the gold submission of a row as bytes. It earns 1; an agent must not see it."""
    return base64.b64decode(row["gold_submission"])


def _grade_review(row, submission):
    """Return the numbers of a review, by the module `mergemill_review.py` beside this module."""
    place = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mergemill_review.py")
    spec = importlib.util.spec_from_file_location("mergemill_review", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    files = {name: content for name, content, _ in _read_verifier(row)}
    defects = json.loads(files["task.json"])["defects"]
    findings = module.grade_findings(submission, defects, json.loads(files["files.json"]))
    return {"reward": findings.value, **findings.parts, "tampering": 0.0}


def _read_verifier(row):
    """Yield path, content and mode of the verifier's files."""
    verifier = row["verifier"]
    raw = verifier if isinstance(verifier, bytes) else base64.b64decode(verifier)
    with tarfile.open(fileobj=io.BytesIO(raw), mode="r:gz") as files:
        for member in files:
            yield member.name, files.extractfile(member).read(), member.mode


class _Container:
    """A container of the row's image that runs the verifier when it is started."""

    def __init__(self, row, engine):
        self.engine = engine
        limits = ["--network", "none", "--pids-limit", "4096"]
        if row.get("cpus"):
            limits += ["--cpus", str(row["cpus"])]
        if row.get("memory_mb"):
            limits += ["--memory", "%dm" % row["memory_mb"], "--memory-swap", "%dm" % row["memory_mb"]]
            limits += ["--shm-size", "%dm" % (row["memory_mb"] // 2)]
        self.options = ["--init", "--user", "0:0", "--workdir", "/", "--entrypoint", "/bin/bash", *limits, row["image"]]

    def __enter__(self):
        self.id = self.call("create", *self.options, "/%s/test.sh" % VERIFIER_FOLDER).decode().strip().split("\n")[-1]
        return self

    def __exit__(self, *_):
        try:
            self.call("rm", "--force", "--volumes", self.id)
        except EvaluationFailure as failure:
            log.warning("container %s is left: %s", self.id, failure)

    def copy_in(self, archive):
        self.call("cp", "-", self.id + ":/", stdin=archive)

    def run(self, seconds):
        """Run the verifier and return its output."""
        try:
            done = self.execute("start", "--attach", self.id, seconds=seconds)
        except subprocess.TimeoutExpired:
            raise EvaluationFailure("the verifier took more than %d seconds" % seconds) from None
        return done.stdout + done.stderr

    def copy_out(self, path):
        """Return the content of a file; None if it is absent or not a regular file."""
        done = self.execute("cp", self.id + ":" + path, "-", seconds=600)
        if done.returncode != 0:
            return None
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
            member = tar.next()
            file = tar.extractfile(member) if member is not None and member.isreg() else None
            return file.read() if file else None

    def call(self, *words, stdin=b""):
        """Return the output of a docker command; raise EvaluationFailure when it fails."""
        try:
            done = self.execute(*words, stdin=stdin, seconds=600)
        except subprocess.TimeoutExpired:
            raise EvaluationFailure("docker %s does not answer" % words[0]) from None
        if done.returncode != 0:
            raise EvaluationFailure("docker %s: %s" % (words[0], done.stderr.decode(errors="replace").strip()[-500:]))
        return done.stdout

    def execute(self, *words, stdin=b"", seconds=None):
        try:
            return subprocess.run([self.engine, *words], input=stdin, capture_output=True, timeout=seconds, check=False)
        except OSError as error:
            raise EvaluationFailure("%s cannot be run: %s" % (self.engine, error)) from error


def _encode(text):
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a surrogate that stands for no byte
        return text.encode("utf-8", "replace")


def _pack(row, submission):
    """Return a tar of the verifier's folder, the submission and the folder of the reward."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        _add(tar, VERIFIER_FOLDER, None, 0o700)
        for name, content, mode in _read_verifier(row):
            _add(tar, VERIFIER_FOLDER + "/" + name, content, mode)
        for folder in ("logs", "logs/artifacts", "logs/verifier"):
            _add(tar, folder, None, 0o755)
        _add(tar, row["submission_path"].lstrip("/"), submission, 0o644)
    return packed.getvalue()


def _add(tar, name, content, mode):
    """Add a file, or a folder where `content` is None, that belongs to root."""
    info = tarfile.TarInfo(name)
    info.mode, info.type = mode, tarfile.DIRTYPE if content is None else tarfile.REGTYPE
    info.size = len(content or b"")
    tar.addfile(info, io.BytesIO(content or b""))


def _parse_rewards(content, output):
    """Return the numbers of reward.json; raise EvaluationFailure where there are none."""
    tail = output.decode(errors="replace").strip()[-1000:]
    if content is None:
        raise EvaluationFailure("the verifier wrote no reward: %s" % tail)
    try:
        rewards = {name: float(value) for name, value in json.loads(content).items()}
    except (ValueError, AttributeError, TypeError):
        raise EvaluationFailure("the verifier's reward cannot be read") from None
    if not math.isfinite(rewards.get("reward", math.nan)):
        raise EvaluationFailure("the verifier's reward is not a number")
    return rewards
