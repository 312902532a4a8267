"""Whether a statement is enough for what its tests demand: rules first, then a calibrated model over what they see."""

from verifiers.judge.stage import judge

__all__ = ["judge"]
