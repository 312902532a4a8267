"""Programs that run in the environments of consumers. They print `[name, [reward of gold, of nothing]]` per task."""

MULTI_SWE_BENCH_READER = """\
import sys
from multi_swe_bench.harness.dataset import Dataset
from multi_swe_bench.harness.report import Report
for line in open(sys.argv[1]):
    row = Dataset.from_json(line)
    report = Report(row.org, row.repo, row.number, run_result=row.run_result, test_patch_result=row.test_patch_result,
                    fix_patch_result=row.fix_patch_result)
    assert report.valid, report.error_msg
    assert (report.f2p_tests, report.n2p_tests) == (row.f2p_tests, row.n2p_tests)
    assert report.p2p_tests.keys() == row.p2p_tests.keys()
"""
"""Computes the lists of tests as the reader does, and compares them with those of the row: TASKS.JSONL."""

INSPECT = """\
import json, sys
from inspect_ai import eval
from inspect_ai.model import ModelOutput
from inspect_ai.solver import solver
from inspect_ai.util import sandbox
from mergemill_inspect.mergemill_reward import read_gold
from mergemill_inspect.tasks import mergemill, read_row

@solver
def hand_in(mode, kind):
    async def solve(state, generate):
        row = read_row(str(state.sample_id))
        gold = read_gold(row)
        if mode == "gold" and (kind == "none" or not row["image"]):
            state.output = ModelOutput.from_content("mockllm", f"Here:\\n```\\n{gold.decode()}```\\n")
        elif mode == "gold":
            await sandbox().write_file("/tmp/gold.patch", gold)
            assert await sandbox().read_file("/tmp/gold.patch", text=False) == gold
            assert (await sandbox().exec(["git", "apply", "/tmp/gold.patch"], user="mergemill")).success
        return state
    return solve

found = {}
for mode in ("gold", "nothing"):
    [log] = eval(mergemill(sandbox=sys.argv[1]), solver=hand_in(mode, sys.argv[1]), model="mockllm/model",
                 display="none", fail_on_error=False)
    for sample in log.samples:
        score = (sample.scores or {}).get("verify_submission")
        found.setdefault(sample.id, []).append(score and score.value)
for name, rewards in found.items():
    print(json.dumps([name, rewards]))
"""
"""Argument: the sandbox, `mergemill_engine` or `none`."""

HUGGING_FACE = """\
import json, sys
from concurrent.futures import ThreadPoolExecutor
from datasets import load_dataset
sys.path.insert(0, sys.argv[1])
from mergemill_reward import compute_reward, read_gold
with ThreadPoolExecutor(2) as pool:
    for split in load_dataset(sys.argv[1]).values():
        for row in split:
            rewards = list(pool.map(lambda one: compute_reward(row, one), (read_gold(row), "")))
            print(json.dumps([row["instance_id"], rewards]))
"""
"""Argument: the bundle."""

NEMO_GYM = """\
import json, sys
from pathlib import Path
from unittest.mock import MagicMock
server = Path(sys.argv[1]) / "resources_servers" / "mergemill"
sys.path.insert(0, str(server))
import app
from fastapi.testclient import TestClient
from mergemill_reward import read_gold
from nemo_gym.server_utils import ServerClient
config = app.MergemillServerConfig(host="0.0.0.0", port=8080, entrypoint="", name="mergemill", num_processes=2)
made = app.MergemillResourcesServer(config=config, server_client=MagicMock(spec=ServerClient))
client = TestClient(made.setup_webserver())
for path in (server / "data").glob("*.jsonl"):
    if path.name == "example.jsonl":
        continue
    for line in open(path):
        row = json.loads(line)
        gold = read_gold(row["verifier_metadata"]).decode()
        rewards = []
        for answer in (f"```\\n{gold}```", "nothing"):
            content = [{"type": "output_text", "text": answer, "annotations": []}]
            message = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": content}
            response = {"id": "r", "created_at": 0.0, "model": "m", "object": "response", "output": [message],
                        "parallel_tool_calls": False, "tool_choice": "auto", "tools": []}
            found = client.post("/verify", json=row | {"response": response})
            assert found.status_code == 200, found.text[:1000]
            rewards.append(found.json()["reward"])
        print(json.dumps([row["verifier_metadata"]["instance_id"], rewards]))
"""
"""Argument: the bundle."""

TOKENIZER = """\
import sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

signs = sorted(pre_tokenizers.ByteLevel.alphabet())
made = Tokenizer(models.BPE(vocab={sign: number for number, sign in enumerate(signs)}, merges=[]))
made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
made.decoder = decoders.ByteLevel()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>", pad_token="<end>")
tokenizer.chat_template = (
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}\\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
tokenizer.save_pretrained(sys.argv[1])
"""
"""Makes a tokenizer with a token per byte, whose decoded text is the encoded one. Argument: its folder."""

_TRAINER = """\
import asyncio, json, sys
from pathlib import Path
from types import SimpleNamespace
from transformers import AutoTokenizer
bundle = Path(sys.argv[1])
tokenizer = AutoTokenizer.from_pretrained(sys.argv[2])
sys.path.insert(0, str(bundle))
from mergemill_reward import read_gold
def write_answers(row):
    return f"Done.\\n```\\n{read_gold(row).decode()}```\\n", "I give up."
"""

VERL = f"""\
{_TRAINER}
import torch
from omegaconf import OmegaConf
from verl import DataProto
from verl.trainer.ppo.reward import load_reward_manager
from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn

files = [str(path) for path in sorted(bundle.glob("*.parquet"))]
config = {{"prompt_key": "prompt", "max_prompt_length": 100_000, "cache_dir": sys.argv[2], "return_raw_chat": True}}
dataset = RLHFDataset(files, tokenizer, OmegaConf.create(config))
[found] = torch.utils.data.DataLoader(dataset, batch_size=len(dataset), collate_fn=collate_fn)
batch = DataProto.from_single_dict(found)
function = {{"path": str(bundle / "mergemill_verl.py"), "name": "compute_score"}}
manager = {{"source": "register", "name": "naive"}}
settings = OmegaConf.create({{"reward": {{"custom_reward_function": function, "reward_manager": manager}}}})

async def grade(manager, columns, answer):
    ids = torch.tensor([tokenizer.encode(answer)])
    tensors = {{"responses": ids, "attention_mask": torch.ones_like(ids)}}
    return (await manager.run_single(DataProto.from_dict(tensors, columns)))["reward_score"]

async def main():
    manager = load_reward_manager(settings, tokenizer)
    for n in range(len(batch)):
        columns, row = batch[n : n + 1].non_tensor_batch, batch[n].non_tensor_batch["extra_info"]
        assert batch[n].non_tensor_batch["raw_prompt"][0]["role"] == "user"
        found = await asyncio.gather(*(grade(manager, columns, answer) for answer in write_answers(row)))
        print(json.dumps([row["instance_id"], found]))

asyncio.run(main())
"""
"""Arguments: bundle, tokenizer; likewise below."""

SKYRL = f"""\
{_TRAINER}
import mergemill_skyrl, skyrl_gym
from skyrl.train.dataset import PromptDataset

files = [str(path) for path in sorted(bundle.glob("*.parquet"))]
dataset = PromptDataset(files, tokenizer, max_prompt_length=100_000, num_workers=1)
for one in dataset.collate_fn([dataset[number] for number in range(len(dataset))]):
    row, found = one["env_extras"]["extra_info"], []
    for answer in write_answers(row):
        env = skyrl_gym.make(one["env_class"], env_config={{}}, extras=one["env_extras"])
        env.init(one["prompt"])
        step = env.step(answer)
        assert step["done"]
        found.append(step["reward"])
    print(json.dumps([row["instance_id"], found]))
"""

SLIME = f"""\
{_TRAINER}
from slime.rollout.data_source import RolloutDataSource
from slime.rollout.rm_hub import async_rm, batched_async_rm

args = SimpleNamespace(
    rollout_global_dataset=True, hf_checkpoint=sys.argv[2], dump_details=None, rollout_max_prompt_len=100_000,
    input_key="prompt", label_key="label", metadata_key="metadata", multimodal_keys=None, tool_key=None,
    apply_chat_template=True, apply_chat_template_kwargs={{}}, rollout_seed=1, rollout_shuffle=True,
    n_samples_per_prompt=2, custom_rm_path="mergemill_slime.custom_rm", rm_type=None,
)

async def main():
    for path in sorted(bundle.glob("*.jsonl")):
        args.prompt_data = str(path)
        source = RolloutDataSource(args)
        for n, group in enumerate(source.get_samples(len(source))):
            for sample, answer in zip(group, write_answers(group[0].metadata)):
                assert sample.prompt.startswith("[user]")
                sample.response = answer
            found = await asyncio.gather(*(async_rm(args, sample) for sample in group))
            assert n or list(await batched_async_rm(args, group)) == found
            print(json.dumps([group[0].label, found]))

asyncio.run(main())
"""
