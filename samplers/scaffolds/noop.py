"""The scaffold that does nothing: its reward must be 0."""

from __future__ import annotations

from samplers.scaffolds.base import AgentEnd, AgentSession, Scaffold


class NoopScaffold(Scaffold):
    """Ends at once."""

    name = "noop"
    version = "1"
    uses_model = False

    def agent_run(self, session: AgentSession) -> AgentEnd:
        """Do nothing."""
        del session
        return AgentEnd()
