"""Reward function for slime: --custom-rm-path mergemill_slime.custom_rm, with this folder on PYTHONPATH.

The submission is `sample.metadata["submission"]` where a rollout function has put a submission, else the last fenced
block of the response. A failed evaluation is repeated and then raised: it never becomes 0.
"""

import asyncio

from mergemill_reward import extract_submission, require_reward


async def custom_rm(args, sample, **_):
    """Return the reward of a sample, a number from 0 to 1; or those of a list of samples, for --group-rm."""
    if isinstance(sample, list):
        return await asyncio.gather(*(custom_rm(args, member) for member in sample))
    submission = sample.metadata.get("submission")
    if submission is None:
        submission = extract_submission(sample.response)
    return await asyncio.to_thread(require_reward, sample.metadata, submission)
