"""Training objectives and what belongs to them, for any trainer on torch: `pip install 'mergemill-client[train]'`.

`mergemill_client.training.verl` and `mergemill_client.training.trl` plug the objectives into verl and TRL.
"""

from importlib.util import find_spec

if find_spec("torch") is None:
    raise ModuleNotFoundError("training objectives need torch: pip install 'mergemill-client[train]'", name="torch")

from mergemill_client.repetition import RepetitionStop
from mergemill_client.training.advantages import group_advantages
from mergemill_client.training.losses import cispo_loss, dapo_loss, grpo_loss, ppo_loss
from mergemill_client.training.mismatch import (
    MismatchReport,
    OutlierCounts,
    mask_outliers,
    mismatch_report,
    truncated_weights,
)
from mergemill_client.training.precision import fp32_head

__all__ = [
    "MismatchReport",
    "OutlierCounts",
    "RepetitionStop",
    "cispo_loss",
    "dapo_loss",
    "fp32_head",
    "group_advantages",
    "grpo_loss",
    "mask_outliers",
    "mismatch_report",
    "ppo_loss",
    "truncated_weights",
]
