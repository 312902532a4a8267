"""Programs that run in the environments of auditors from PyPI, with the reward module of a bundle."""

TREE_GRADER = """\
import json, subprocess, sys
from pathlib import Path
bundle, name, tree = sys.argv[1:]
sys.path.insert(0, bundle)
from mergemill_reward import compute_rewards
rows = (json.loads(line)["metadata"] for path in Path(bundle).glob("*.jsonl") for line in path.open())
row = next(row for row in rows if row["instance_id"] == name)
subprocess.run(["git", "-C", tree, "add", "-A"], check=True)
diff = ["git", "-C", tree, "diff", "--cached", "--binary", "HEAD"]
rewards = compute_rewards(row, subprocess.run(diff, check=True, capture_output=True).stdout)
print(json.dumps(rewards))
print("REWARD: %d / 1" % rewards["reward"])
if rewards["reward"] == 1:
    print("RESULT: PASS")
"""
"""Grades the changes of a work tree, for gradecheck: arguments are the bundle, the name of a task and the tree."""

BOHRIN = """\
import io, json, subprocess, sys, tarfile
from pathlib import Path
from bohrin.ir.task import Shape, Source, Task
from bohrin.mutate.battery import battery
from bohrin.relations import positive_controls
from bohrin.scoring.coverage import Attempt
from bohrin.scoring.scorecard import ControlAttempt, scorecard
bundle, source = sys.argv[1:]
sys.path.insert(0, bundle)
from mergemill_reward import compute_rewards, read_gold
row = next(json.loads(line)["metadata"] for path in Path(bundle).glob("*.jsonl") for line in path.open())
PLACES = {
    "source_path": row["workdir"] + "/" + source,
    "test_root": row["workdir"] + "/tests",
    "tool_path": "/opt/venv/bin/pytest",
    "reward_path": "/logs/verifier/reward.json",
    "parser_path": "/tests/grade.py",
    "measurement_path": "/tests/grade.py",
}

def docker(*words, data=b""):
    return subprocess.run(["docker", *words], input=data, capture_output=True, check=True).stdout

def fill(text):
    for name, place in PLACES.items():
        text = text.replace("{" + name + "}", place)
    return text

def collect(files, commands=()):
    \"\"\"Return the submission that is collected from an agent's container with the gold patch and other changes.\"\"\"
    words = ["-d", "--network", "none", "--user", "0:0", "--entrypoint", "sleep", row["image"], "600"]
    container = docker("run", *words).decode().strip()
    try:
        docker("exec", "-i", "-w", row["workdir"], container, "git", "apply", data=read_gold(row))
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for path, content in files.items():
                member = tarfile.TarInfo(path.lstrip("/"))
                member.size, member.mode = len(content.encode()), 0o755
                tar.addfile(member, io.BytesIO(content.encode()))
        docker("cp", "-", container + ":/", data=packed.getvalue())
        for command in commands:
            subprocess.run(["docker", "exec", container, "bash", "-c", command], capture_output=True, check=False)
        docker("exec", container, "bash", "-c", "mkdir -p /logs/artifacts; " + row["collect_command"])
        read = docker("exec", container, "cat", PLACES["source_path"]).decode()
        return docker("exec", container, "cat", row["submission_path"]), read
    finally:
        docker("rm", "-f", container)

def accepts(payload):
    if isinstance(payload, Source):
        changes = {PLACES["source_path"]: payload.text}, ()
    else:
        changes = {fill(path): text for path, text in payload.files.items()}, [fill(one) for one in payload.commands]
    return compute_rewards(row, collect(*changes)[0])["reward"] == 1

reference = collect({})[1]
attempts, controls, tasks = [], [], []
for shape in (Shape.PROGRAM, Shape.WORKSPACE, Shape.CONTAINER):
    task = Task(id=shape.value, prompt=row["problem_statement"], reference=reference, shape=shape)
    tasks.append(task)
    for candidate in battery(task).candidates:
        accepted = accepts(candidate.payload)
        attempts.append(Attempt(task.id, candidate, accepted=accepted))
        print(json.dumps(["candidate", shape.value, candidate.provenance.operator, accepted]))
for control in positive_controls(tasks[0]):
    accepted = accepts(control.payload)
    controls.append(ControlAttempt(tasks[0].id, control, accepted=accepted))
    print(json.dumps(["control", control.relation, accepted]))
print(scorecard(tasks, attempts, controls))
"""
"""Offers all candidates and positive controls of bohrin to a bundle's task: arguments are the bundle and a source file.

Candidates are made in a container of the task's image, as an agent would, and collected by the bundle's command.
"""
