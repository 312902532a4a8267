"""What the tests say of a candidate, what a submission is worth, and whether a task holds."""

from verifiers.audit import Finding, audit_image
from verifiers.certify import certify
from verifiers.inspection import Inspection, inspect
from verifiers.rewards import grade, reward_of
from verifiers.verify import verify

__all__ = ["Finding", "Inspection", "audit_image", "certify", "grade", "inspect", "reward_of", "verify"]
