"""Environment for SkyRL: `import mergemill_skyrl` registers the env_class of the rows, `mergemill`.

A step: the response hands in its last fenced block. A failed evaluation is repeated and then raised: it never
becomes 0. For agents that work in the container, subclass MergemillEnv and pass their submission to `grade`.
"""

import skyrl_gym
from mergemill_reward import extract_submission, require_reward
from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput


class MergemillEnv(BaseTextEnv):
    """Environment of a row; `extras` holds its columns."""

    def __init__(self, env_config=None, extras=None):
        super().__init__()
        self.row = (extras or {})["extra_info"]

    def step(self, action):
        """Grade the submission in the response and end the episode."""
        reward = self.grade(extract_submission(action))
        return BaseTextEnvStepOutput(observations=[], reward=reward, done=True, metadata={})

    def grade(self, submission):
        """Return the reward of a submission."""
        return require_reward(self.row, submission)


skyrl_gym.register(id="mergemill", entry_point="mergemill_skyrl:MergemillEnv")
