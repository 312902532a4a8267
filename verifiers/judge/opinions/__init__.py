"""Opinions of language models on a statement: several answers, each claim with a verified quote."""

from verifiers.judge.opinions.panel import OpinionPanel, collect_opinions

__all__ = ["OpinionPanel", "collect_opinions"]
