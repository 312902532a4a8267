"""Reward function for verl: custom_reward_function.path=mergemill_verl.py, custom_reward_function.name=compute_score.

The submission is the last fenced block of the response, or the text that an agent loop left under `submission` in the
`tool_extra_fields` of its output. verl needs a number for every rollout, so a failed evaluation is repeated and then
raised: it never becomes 0.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # verl loads this file by its path

from mergemill_reward import extract_submission, require_reward


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **_):
    """Return the reward of a response: a number from 0 to 1."""
    submission = extra_info.get("submission")
    return require_reward(extra_info, extract_submission(solution_str) if submission is None else submission)
