"""The scaffold that knows the solution: its reward must be 1."""

from __future__ import annotations

from samplers.scaffolds.base import AgentEnd, AgentSession, Scaffold

PATCH_FILE = "/run/mergemill/gold.patch"


class OracleScaffold(Scaffold):
    """Applies the gold submission in the container, so that it is collected like any other."""

    name = "oracle"
    version = "1"
    uses_model = False

    def agent_run(self, session: AgentSession) -> AgentEnd:
        """Write or apply the gold submission."""
        gold, answer = session.make_gold(), session.subject.answer
        if answer is not None:
            session.shell.write_files({answer: gold})
            return AgentEnd()
        session.shell.write_files({PATCH_FILE: gold})
        result = session.shell.run(f"git apply {PATCH_FILE}; code=$?; rm {PATCH_FILE}; exit $code", seconds=60)
        if result.exit_code:
            return AgentEnd(reason="agent-failed", detail="the gold patch does not apply", output=result.output)
        return AgentEnd(output=result.output)
