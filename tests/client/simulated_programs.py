"""Programs that run the adapters of simulated environments with RAGEN's own code, in a process of their own.

The first argument is the folder of RAGEN's source, the second the address of a server. They print one JSON object.
"""

BEGIN = '''
import importlib.util, json, math, sys, types
from pathlib import Path
source, url = Path(sys.argv[1]), sys.argv[2]

def stub(name, **content):
    """Put a module of a few names in the place of one that only other environments need."""
    module = types.ModuleType(name)
    module.__dict__.update(content)
    module.__path__ = []
    sys.modules[name] = module
    return module

def load(name, path):
    """Load a file of RAGEN as it is, without its package, which imports every environment's libraries."""
    spec = importlib.util.spec_from_file_location(name, source / path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module

stub("ragen", __file__="x")
environments = stub("ragen.env", REGISTERED_ENVS={}, REGISTERED_ENV_CONFIGS={})
base = load("ragen.env.base", "ragen/env/base.py")
'''
ONE_EPISODE = (
    BEGIN
    + """
from mergemill_client.environment import UnscoredError
from mergemill_client.simulated import ragen as adapter

env = adapter.SimulatedEnv(adapter.SimulatedEnvConfig(url=url, patience=1))
assert isinstance(env, base.BaseLanguageBasedEnv) and isinstance(env, base.BaseEnv)
first = env.reset(seed=0, mode="train")
again = adapter.SimulatedEnv(adapter.SimulatedEnvConfig(url=url)).reset(seed=0)
steps = [env.step(text) for text in ("Your email?", "<tool_call>broken", "Done.")]
env.close()
record = adapter.connect(url).get_record(env.answer["episode"])
forked = [
    adapter.SimulatedEnv(adapter.SimulatedEnvConfig(url=url, env_id=str(n), group_size=2, groups=2)) for n in range(4)
]
samples = [[], []]
for episode in samples:
    for one in forked:
        episode.append(one.reset(mode="train"))
lost = adapter.SimulatedEnv(adapter.SimulatedEnvConfig(url=url))
lost.reset(seed=1)
try:
    lost.step("Done, unreadable.")
except UnscoredError as error:
    raised = str(error)
print(json.dumps({
    "first": first, "again": again, "steps": steps, "rendered": env.render(), "record": record, "raised": raised,
    "system": env.system_prompt, "samples": samples, "validation": [one.reset(mode="val") for one in forked],
}))
"""
)
MANAGER = (
    BEGIN
    + '''
class Config(dict):
    """What hydra gives: a mapping whose items are attributes, too."""
    def __getattr__(self, name):
        if name not in self:
            raise AttributeError(name)
        return self[name]
    def get(self, name, default=None):
        return dict.get(self, name, default)

def make(value):
    return Config({k: make(v) for k, v in value.items()}) if isinstance(value, dict) else value

stub("hydra", main=lambda **_: lambda function: function)
stub("ragen.utils", register_resolvers=lambda: None)
pillow = stub("PIL")
pillow.Image = stub("PIL.Image", Image=object)
stub("numpy", ndarray=type("ndarray", (), {}), sum=sum, mean=lambda some: sum(some) / len(some))
stub("ragen.llm_agent")
load("ragen.llm_agent.es_manager", "ragen/llm_agent/es_manager.py")
from mergemill_client.simulated import ragen as adapter

adapter.install()
adapter.install()
manager = sys.modules["ragen.llm_agent.es_manager"].EnvStateManager(make({
    "es_manager": {
        "format_penalty": -0.1,
        "train": {"env_groups": 2, "group_size": 3, "env_configs": {"tags": ["Simulated"], "n_groups": [2]}},
    },
    "custom_envs": {"Simulated": Config(
        env_type=adapter.ENV_TYPE, max_actions_per_traj=60, env_config={"url": url}, parallel_friendly=False
    )},
    "seed": {"train": 0},
}))
opened = manager.reset()
beginnings = [one["history"][0]["state"] for one in opened]
texts = ["Done.", "Done, unreadable.", "Done badly.", "Done, unreadable.", "Done, unreadable.", "Done, unreadable."]
inputs = [
    {"env_id": n, "llm_response": text, "llm_raw_response": text, "actions": [text]} for n, text in enumerate(texts)
]
left = manager.step(inputs)
states = manager.get_rollout_states()
print(json.dumps({
    "beginnings": beginnings, "left": len(left),
    "rewards": [sum(turn.get("reward", 0) for turn in one["history"]) for one in states],
    "unscored": [one["metrics"].get(adapter.UNSCORED, 0) for one in states],
}))
'''
)
