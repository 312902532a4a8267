"""Statement judge: rules and a calibrated model decide whether a statement specifies its tests' requirements."""

from verifiers.judge.stage import judge

__all__ = ["judge"]
