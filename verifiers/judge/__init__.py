"""Statement judge: rules and a calibrated model decide whether a statement specifies what its tests require."""

from verifiers.judge.stage import judge

__all__ = ["judge"]
