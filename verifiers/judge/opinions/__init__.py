"""What language models say of a statement: each claim with its quote, several asked, none believed without evidence."""

from verifiers.judge.opinions.panel import Panel, ask_panel

__all__ = ["Panel", "ask_panel"]
