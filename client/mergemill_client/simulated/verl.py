"""verl: an agent loop whose turns a simulated environment answers.

Rows come from `mergemill simulate rl`; each names this loop and its task. ::

    actor_rollout_ref.rollout.mode=async
    actor_rollout_ref.rollout.agent.agent_loop_config_path=loops.yaml
    algorithm.adv_estimator=grpo_scored     # with VERL_USE_EXTERNAL_MODULES=mergemill_client.adapters.verl

with `loops.yaml`::

    - name: mergemill_simulated
      _target_: mergemill_client.simulated.verl.SimulatedAgentLoop
      url: http://127.0.0.1:8500

Each step has the loop's own count of tokens. An episode without a reward has NaN as its reward and
a response mask of zeros; the estimator `grpo_scored` leaves it out of the group's baseline. Without that estimator set
`unscored: raise`, which ends the batch with `UnscoredError`: verl's own estimators would make NaN of the whole group.
"""

from __future__ import annotations

import math
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput, register

from mergemill_client.adapters.connection import wait_for
from mergemill_client.environment import UnscoredError
from mergemill_client.simulated.environment import connect

LOOP = "mergemill_simulated"
ROLES = {"user": "user", "tool": "tool"}
"""Role of an answer of the server -> role of its message."""


@register(LOOP)
class SimulatedAgentLoop(AgentLoopBase):  # type: ignore[misc]
    """Plays one episode, and returns its tokens with the reward.

    Args:
        url: address of the server; default as in `connect`.
        token: its token.
        unscored: `nan`, or `raise`.
    """

    def __init__(
        self, *args: Any, url: str | None = None, token: str | None = None, unscored: str = "nan", **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.response_length = self.rollout_config.response_length
        self._unscored, self._server = unscored, connect(url, token)

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> AgentLoopOutput:
        """Return tokens, mask and reward of one episode of the row's task.

        Raises:
            UnscoredError: it has no reward, and `unscored` is `raise`.
        """
        task = (kwargs.get("extra_info") or {}).get("task")
        opened = await wait_for(lambda: self._server.reset(task=task))
        messages = [
            {"role": "system", "content": opened["policy"]},
            {"role": "user", "content": opened["observation"]},
        ]
        tokens = await self.ct_build_initial_tokens(messages, tools=opened["tools"])
        n_prompt, request = len(tokens), uuid4().hex
        mask: list[int] = []
        logprobs: list[float] | None = []
        answer: dict[str, Any] = opened
        turn = 0
        while not answer["done"]:
            generated = await self.server_manager.generate(
                request_id=request, prompt_ids=tokens, sampling_params=sampling_params
            )
            has_logprobs = bool(generated.log_probs)
            merged, mask, logprobs = await self.ct_merge_assistant_token(
                tokens,
                generated.token_ids,
                mask,
                logprobs if has_logprobs else None,
                assistant_logprobs=generated.log_probs if has_logprobs else None,
            )
            tokens = merged.token_ids
            text = self.tokenizer.decode(generated.token_ids, skip_special_tokens=True)
            answer = await wait_for(self._step, opened["episode"], text, turn, len(tokens))
            before = [*messages, {"role": "assistant", "content": text}]
            turn += 1
            if answer["done"]:
                break
            if len(mask) >= self.response_length:  # nothing more would be trained
                answer = await wait_for(self._server.evaluate, opened["episode"])
                break
            messages = [*before, {"role": ROLES[answer["role"]], "content": answer["observation"]}]
            merged, mask, logprobs = await self.ct_merge_context_msg(
                before, messages, tokens, mask, logprobs or None, tools=opened["tools"]
            )
            tokens = merged.token_ids
        return self._make_output(tokens, n_prompt, mask, logprobs, answer, turn)

    def _step(self, episode: str, text: str, turn: int, tokens: int) -> dict[str, Any]:
        return self._server.step(episode, text, turn=turn, context_tokens=tokens)

    def _make_output(
        self,
        tokens: list[int],
        n_prompt: int,
        mask: list[int],
        logprobs: list[float] | None,
        answer: dict[str, Any],
        turns: int,
    ) -> AgentLoopOutput:
        reward, limit = answer["reward"], self.response_length
        if reward is None and self._unscored == "raise":
            raise UnscoredError(f"episode {answer['episode']}: {answer['infrastructure_error']}")
        is_trained = 0 if reward is None else 1
        response = tokens[len(tokens) - len(mask) :] if mask else []
        return AgentLoopOutput(
            prompt_ids=tokens[:n_prompt],
            response_ids=response[:limit],
            response_mask=[value * is_trained for value in mask[:limit]],
            response_logprobs=logprobs[:limit] if logprobs else None,
            reward_score=math.nan if reward is None else float(reward),
            num_turns=2 * turns + 1,
            metrics=AgentLoopMetrics(),
            extra_fields={
                "episode": answer["episode"],
                "environment": answer["environment"],
                "unscored": reward is None,
                "termination_reason": answer["termination_reason"] or "",
            },
        )
