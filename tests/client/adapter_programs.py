"""Programs that run the adapters in the environments of their frameworks.

The first argument is a JSON file with task -> submission that earns 1, the second a folder to work in, the third the
address of a server that never scores anything. They print one JSON object: `found` has the rewards of right and wrong
submissions, `padded` the graded and the binary one of a review with a wrong finding among the right ones.
"""

BEGIN = """\
import asyncio, json, math, os, subprocess, sys
from pathlib import Path
from types import SimpleNamespace
from mergemill_client.adapters.connection import connect
from mergemill_client.environment import UnscoredError
gold = json.loads(Path(sys.argv[1]).read_text())
folder, lost = Path(sys.argv[2]), sys.argv[3]
found, padded = {}, {}
def write_answers(task):
    return f"Done.\\n```json\\n{gold[task]}\\n```\\n", "I give up."
def write_padded(task):
    review = json.loads(gold[task])
    review["findings"].append({"file": "no/such.py", "first_line": 1, "last_line": 1, "claim": "It is wrong."})
    return f"```json\\n{json.dumps(review)}\\n```\\n"
def watch_containers():
    from mergemill_client.adapters.containers import TaskContainer
    names, make = [], TaskContainer.__init__
    def make_watched(self, *given, **more):
        make(self, *given, **more)
        names.append(self.name)
    TaskContainer.__init__ = make_watched
    def count_left():
        found = [subprocess.run(["docker", "inspect", name], capture_output=True).returncode == 0 for name in names]
        return [len(found), sum(found)]
    return count_left
LOOK = "id -un && ls /sys/class/net && git status --short"
def finish():
    print(json.dumps({"found": found, "padded": padded, **globals().get("more", {})}))
"""

VERL = f"""\
{BEGIN}
import numpy as np, pyarrow as pa, pyarrow.parquet as pq, torch
from omegaconf import OmegaConf
from transformers import AutoTokenizer
import verl
from verl import DataProto
from verl.trainer.ppo.core_algos import get_adv_estimator_fn
from verl.trainer.ppo.reward import load_reward_manager
from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn
from mergemill_client.adapters import verl as adapter

tokenizer = AutoTokenizer.from_pretrained(folder / "tokenizer")
pq.write_table(pa.Table.from_pylist(list(adapter.iterate_rows(connect()))), folder / "train.parquet")
config = {{"prompt_key": "prompt", "max_prompt_length": 100_000, "cache_dir": str(folder), "return_raw_chat": True}}
dataset = RLHFDataset([str(folder / "train.parquet")], tokenizer, OmegaConf.create(config))
[loaded] = torch.utils.data.DataLoader(dataset, batch_size=len(dataset), collate_fn=collate_fn)
batch = DataProto.from_single_dict(loaded)

def load(**given):
    function = {{"path": adapter.__file__, "name": "compute_score", "reward_kwargs": given}}
    manager = {{"source": "register", "name": "naive"}}
    settings = OmegaConf.create({{"reward": {{"custom_reward_function": function, "reward_manager": manager}}}})
    return load_reward_manager(settings, tokenizer)

async def grade(manager, columns, answer):
    ids = torch.tensor([tokenizer.encode(answer)])
    tensors = {{"responses": ids, "attention_mask": torch.ones_like(ids)}}
    return (await manager.run_single(DataProto.from_dict(tensors, columns)))["reward_score"]

async def main():
    graded, binary = load(), load(shape="binary")
    for n in range(len(batch)):
        columns, row = batch[n : n + 1].non_tensor_batch, batch[n].non_tensor_batch["extra_info"]
        assert batch[n].non_tensor_batch["raw_prompt"][0]["role"] == "user"
        answers, worse = write_answers(row["task"]), write_padded(row["task"])
        found[row["task"]] = await asyncio.gather(*(grade(graded, columns, answer) for answer in answers))
        padded[row["task"]] = [await grade(manager, columns, worse) for manager in (graded, binary)]
    nan = await grade(load(url=lost, unscored="nan"), columns, "x")
    try:
        await grade(load(url=lost), columns, "x")
    except Exception as error:
        raised = type(error).__name__
    return math.isnan(nan), raised

is_nan, raised = asyncio.run(main())
rewards = torch.zeros(7, 3)
rewards[:, -1] = torch.tensor([1.0, 0.0, math.nan, 1.0, math.nan, math.nan, 1.0])
index, mask = np.array(list("aaaabbb"), dtype=object), torch.ones(7, 3, dtype=torch.int64)
made, _ = get_adv_estimator_fn("grpo_scored")(
    token_level_rewards=rewards, response_mask=mask, index=index, config={{"norm_adv_by_std_in_grpo": True}}
)
expected, _ = get_adv_estimator_fn("grpo")(
    token_level_rewards=rewards[[0, 1, 3]], response_mask=mask[[0, 1, 3]], index=index[[0, 1, 3]]
)
more = {{
    "is_nan": is_nan, "raised": raised, "version": verl.__version__,
    "advantages": made.tolist(), "mask": mask.tolist(),
    "expected": expected.tolist(),
}}
finish()
"""

SKYRL = f"""\
{BEGIN}
import numpy as np, pyarrow as pa, pyarrow.parquet as pq, skyrl_gym, torch
from transformers import AutoTokenizer
from skyrl.backends.skyrl_train.utils import ppo_utils
from skyrl.train.dataset import PromptDataset
from mergemill_client.adapters import skyrl as adapter

tokenizer = AutoTokenizer.from_pretrained(folder / "tokenizer")
pq.write_table(pa.Table.from_pylist(list(adapter.iterate_rows(connect()))), folder / "train.parquet")
dataset = PromptDataset([str(folder / "train.parquet")], tokenizer, max_prompt_length=100_000, num_workers=1)

def step(one, answer, **config):
    env = skyrl_gym.make(one["env_class"], env_config=config, extras=one["env_extras"])
    env.init(one["prompt"])
    made = env.step(answer)
    assert made["done"]
    return made["reward"]

for one in dataset.collate_fn([dataset[number] for number in range(len(dataset))]):
    task = one["env_extras"]["extra_info"]["task"]
    found[task] = [step(one, answer) for answer in write_answers(task)]
    padded[task] = [step(one, write_padded(task), shape=shape) for shape in (None, "binary")]
is_nan = math.isnan(step(one, "x", url=lost, unscored="nan"))
try:
    step(one, "x", url=lost)
except UnscoredError as error:
    raised = type(error).__name__

adapter.register_estimator()
rewards = torch.zeros(7, 3)
rewards[:, -1] = torch.tensor([1.0, 0.0, math.nan, 1.0, math.nan, math.nan, 1.0])
index = np.array(list("aaaabbb"))
made, _ = ppo_utils.compute_advantages_and_returns(rewards, torch.ones(7, 3), index, "grpo_scored", config=None)
expected, _ = ppo_utils.compute_advantages_and_returns(
    rewards[[0, 1, 3]], torch.ones(3, 3), index[[0, 1, 3]], "grpo", config=None
)
more = {{"is_nan": is_nan, "raised": raised, "advantages": made.tolist(), "expected": expected.tolist()}}
finish()
"""

SLIME = f"""\
{BEGIN}
from slime.rollout.data_source import RolloutDataSource
from slime.rollout.rm_hub import async_rm, batched_async_rm
from slime.utils.misc import load_function
from mergemill_client.adapters import slime as adapter

with (folder / "train.jsonl").open("w") as file:
    for row in adapter.iterate_rows(connect()):
        file.write(json.dumps(row) + "\\n")
args = SimpleNamespace(
    rollout_global_dataset=True, hf_checkpoint=str(folder / "tokenizer"), dump_details=None,
    rollout_max_prompt_len=100_000, input_key="prompt", label_key="label", metadata_key="metadata",
    multimodal_keys=None, tool_key=None, apply_chat_template=True, apply_chat_template_kwargs={{}}, rollout_seed=1,
    rollout_shuffle=True, n_samples_per_prompt=3, rm_type=None, prompt_data=str(folder / "train.jsonl"),
    custom_rm_path="mergemill_client.adapters.slime.compute_reward", reward_key=None, rewards_normalization=True,
    grpo_std_normalization=True,
)

async def main():
    source = RolloutDataSource(args)
    for n, group in enumerate(source.get_samples(len(source))):
        for sample, answer in zip(group, write_answers(group[0].label)):
            assert sample.prompt.startswith("[user]")
            sample.response = answer
        found[group[0].label] = await asyncio.gather(*(async_rm(args, sample) for sample in group[:2]))
        assert n or list(await batched_async_rm(args, group[:2])) == found[group[0].label]
        group[2].response, padded[group[0].label] = write_padded(group[0].label), []
        for shape in ("graded", "binary"):
            os.environ["MERGEMILL_REWARD"] = shape
            padded[group[0].label].append(await async_rm(args, group[2]))
    os.environ["MERGEMILL_GRADER_URL"] = lost
    rewards = [1.0, 0.0, await async_rm(args, group[2])]
    for sample, reward in zip(group, rewards):
        sample.reward = reward
    early = group[2].remove_sample
    normalize = load_function("mergemill_client.adapters.slime.normalize_rewards")
    shown, trained = normalize(args, group)
    return {{
        "is_nan": math.isnan(rewards[2]), "early": early,
        "removed": [sample.remove_sample for sample in group], "shown": shown, "trained": trained,
    }}

more = asyncio.run(main())
finish()
"""

NEMO_GYM = f"""\
{BEGIN}
from unittest.mock import MagicMock
from fastapi.testclient import TestClient
from nemo_gym.server_utils import ServerClient
from mergemill_client.adapters import nemo_gym as adapter

def make_client(**given):
    config = adapter.MergemillServerConfig(host="0.0.0.0", port=8080, entrypoint="", name="mergemill", **given)
    made = adapter.MergemillResourcesServer(config=config, server_client=MagicMock(spec=ServerClient))
    return TestClient(made.setup_webserver(), raise_server_exceptions=False)

def verify(client, row, answer):
    content = [{{"type": "output_text", "text": answer, "annotations": []}}]
    message = {{"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": content}}
    response = {{"id": "r", "created_at": 0.0, "model": "m", "object": "response", "output": [message],
                "parallel_tool_calls": False, "tool_choice": "auto", "tools": []}}
    return client.post("/verify", json=row | {{"response": response}})

client, binary = make_client(), make_client(shape="binary")
for row in adapter.iterate_rows(connect()):
    task = row["verifier_metadata"]["task"]
    answers = [verify(client, row, answer).json() for answer in write_answers(task)]
    assert answers[0]["instance_id"] == task
    found[task] = [answer["reward"] for answer in answers]
    padded[task] = [verify(one, row, write_padded(task)).json()["reward"] for one in (client, binary)]
more = {{"status": verify(make_client(url=lost), row, "x").status_code}}
finish()
"""

OPENENV = f"""\
{BEGIN}
import socket, threading, time
import uvicorn
from openenv.core.generic_client import GenericEnvClient
from mergemill_client.adapters import openenv as adapter

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
server = uvicorn.Server(uvicorn.Config(adapter.create_application(), port=port, log_level="error"))
threading.Thread(target=server.run, daemon=True).start()
while not server.started:
    time.sleep(0.01)

def play(task, *actions):
    with GenericEnvClient(base_url=f"http://127.0.0.1:{{port}}").sync() as env:
        prompt = env.reset(task=task).observation["messages"]
        assert prompt[0]["role"] == "user"
        steps = [env.step(action) for action in actions]
    assert steps[-1].done
    return steps

count_left = watch_containers()
for task in gold:
    if connect().load_prompt(task)["image"]:
        write = f"cat > /tmp/p <<'EOF'\\n{{gold[task]}}\\nEOF\\ngit apply /tmp/p && {{LOOK}}"
        steps = play(task, {{"command": "touch a"}}, {{"command": write}}, {{"submit": True}})
        noop = play(task, {{"submit": True}})
        found[task] = [steps[-1].reward, noop[-1].reward, steps[1].observation["output"]]
    else:
        found[task] = [play(task, {{"submit": True, "answer": answer}})[-1].reward for answer in write_answers(task)]
        padded[task] = []
        for shape in ("graded", "binary"):
            os.environ["MERGEMILL_REWARD"] = shape
            padded[task].append(play(task, {{"submit": True, "answer": write_padded(task)}})[-1].reward)
env = adapter.MergemillOpenEnvironment()
env._prompt, env._environment = {{"task": task, "kind": "review"}}, connect(lost)
seen = env.step(adapter.MergemillAction(submit=True))
more = {{"unscored": seen.reward, "error": seen.infrastructure_error, "containers": count_left()}}
server.should_exit = True
finish()
"""

TRL = f"""\
{BEGIN}
import torch
from datasets import Dataset
from transformers import AutoTokenizer, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer
import trl
from mergemill_client.adapters import trl as adapter

tokenizer = AutoTokenizer.from_pretrained(folder / "tokenizer")
size = {{"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "num_key_value_heads": 2, "vocab_size": len(tokenizer), "max_position_embeddings": 8192}}
rows = [row for row in adapter.iterate_rows(connect()) if row["task"] == min(gold)]
rewards = []

async def compute_rewards(**given):
    made = await adapter.compute_rewards(**given)
    rewards.append(made)
    return made

def run_rollouts(prompts, trainer):
    answers = [write_answers(min(gold))[n % 2] for n in range(4)]
    if os.environ["MERGEMILL_GRADER_URL"] == lost:
        answers = ["x"] * 4
    ids = [tokenizer.encode(answer) for answer in answers]
    start = [tokenizer.encode("[user]")] * 4
    return {{"prompt_ids": start, "completion_ids": ids, "logprobs": [[0.0] * len(one) for one in ids]}}

def train():
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(Qwen2Config(**size))
    before = [one.detach().clone() for one in model.parameters()]
    args = GRPOConfig(
        output_dir=str(folder / "out"), max_steps=1, per_device_train_batch_size=4, num_generations=4, use_cpu=True,
        max_completion_length=512, report_to="none", logging_steps=1, learning_rate=0.1, save_strategy="no", bf16=False,
        beta=0.0,
    )
    trainer = GRPOTrainer(
        model, reward_funcs=compute_rewards, args=args, train_dataset=Dataset.from_list(rows * 4),
        processing_class=tokenizer, rollout_func=run_rollouts,
    )
    trainer.train()
    moved = any(not torch.equal(one, other) for one, other in zip(before, model.parameters()))
    return moved, [log["reward"] for log in trainer.state.log_history if "reward" in log]

moved, logged = train()
found[min(gold)], padded[min(gold)] = rewards[0][:2], []
for shape in ("graded", "binary"):
    os.environ["MERGEMILL_REWARD"] = shape
    padded[min(gold)] += asyncio.run(
        adapter.compute_rewards([""], [write_padded(min(gold))], [rows[0]["task"]], [rows[0]["kind"]])
    )
os.environ["MERGEMILL_GRADER_URL"] = lost
moved_without, _ = train()
more = {{"moved": moved, "logged": logged, "lost": rewards[-1], "moved_without": moved_without,
        "version": trl.__version__}}
finish()
"""

TRL_ENVIRONMENT = f"""\
{BEGIN}
from datasets import Dataset
from transformers import AutoTokenizer, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer
from mergemill_client.adapters import trl as adapter

tokenizer = AutoTokenizer.from_pretrained(folder / "tokenizer")
size = {{"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "num_key_value_heads": 2, "vocab_size": len(tokenizer)}}
rows = list(adapter.iterate_rows(connect()))
args = GRPOConfig(output_dir=str(folder / "out"), per_device_train_batch_size=2, num_generations=2, use_cpu=True,
                  report_to="none", bf16=False)
tokenizer.response_schema = {{"type": "object", "properties": {{"role": {{"const": "assistant"}}}}}}
tokenizer.chat_template = (
    "{{% for m in messages %}}[{{{{ m.role }}}}]{{{{ m.content or '' }}}}{{% for c in m.tool_calls or [] %}}"
    "{{{{ c.function.name }}}}{{{{ c.function.arguments | tojson }}}}{{% endfor %}}\\n{{% endfor %}}"
    "{{% if add_generation_prompt %}}[assistant]{{% endif %}}"
)
trainer = GRPOTrainer(
    Qwen2ForCausalLM(Qwen2Config(**size)), args=args, train_dataset=Dataset.from_list(rows),
    processing_class=tokenizer, environment_factory=adapter.MergemillEnvironment,
)
count_left = watch_containers()
for row in rows:
    if row["task"] not in gold:
        continue
    environments = [adapter.MergemillEnvironment(), adapter.MergemillEnvironment()]
    for environment in environments:
        environment.reset(**row)
    if row["task_image"]:
        write = f"cat > /tmp/p <<'EOF'\\n{{gold[row['task']]}}\\nEOF\\ngit apply /tmp/p && {{LOOK}}"
        output = environments[0].bash(write)
    else:
        output = environments[0].submit(write_answers(row["task"])[0])
    columns = {{"environments": environments}}
    found[row["task"]] = [*trainer.reward_funcs[-1](**columns), output]
more = {{
    "tools": sorted(tool.__name__ for tool in trainer.tools), "names": trainer.reward_func_names,
    "containers": count_left(),
}}
finish()
"""

VERIFIERS = f"""\
{BEGIN}
import verifiers.v1 as vf
from verifiers.v1.runtimes import DockerConfig, make_runtime
from mergemill_client.adapters import verifiers as adapter

async def play(task, patch):
    runtime = make_runtime(DockerConfig(image=task.data.image, workdir=task.data.workdir))
    await runtime.start()
    try:
        if patch:
            await runtime.write("/tmp/p", patch.encode())
            made = await runtime.run(["git", "-C", task.data.workdir, "apply", "/tmp/p"], {{}})
            assert made.exit_code == 0, made.stderr
        trace = SimpleNamespace(state=adapter.MergemillState())
        await task.finalize(trace, runtime)
        return await task.grade_submission(trace, runtime)
    finally:
        await runtime.stop()

async def main():
    taskset = adapter.MergemillTaskset(adapter.MergemillTasksetConfig(filters={{"ids": ",".join(gold)}}))
    for task in taskset.load():
        assert task.NEEDS_CONTAINER
        found[task.data.id] = [await play(task, patch) for patch in (gold[task.data.id], "")]

asyncio.run(main())
finish()
"""
