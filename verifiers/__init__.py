"""Verification, grading, certification and inspection of tasks."""

from verifiers.audit import ImageLeak, audit_image
from verifiers.certify import certify
from verifiers.inspection import Inspection, inspect
from verifiers.rewards import grade, select_reward
from verifiers.stage import verify

__all__ = ["ImageLeak", "Inspection", "audit_image", "certify", "grade", "inspect", "select_reward", "verify"]
