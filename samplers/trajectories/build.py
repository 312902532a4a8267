"""Trajectories of a rollout, from the exchanges with its model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evaluation.instructions.submission import extract_patch
from samplers.gateway.exchanges import Exchange
from samplers.trajectories.content import TrajectoryContent, pack_content, write_content
from samplers.trajectories.credit import Credit, divide_reward, share_reward
from samplers.trajectories.evidence import TrajectoryEvidence
from samplers.trajectories.forest import PrefixForest, build_forest, uses_token_ids
from samplers.trajectories.measures import measure_all
from samplers.trajectories.reading import read_requests
from samplers.trajectories.requests import ModelRequest
from samplers.trajectories.roles import assign_roles
from taskdb.artifacts import Artifacts
from taskdb.records.rollouts import Rollout, Trajectory, TrajectoryRole

BUILDER = 1
"""Version of the rules of this package; a new version makes new trajectories of stored rollouts."""


def build_trajectories(
    rollout: Rollout,
    exchanges: Iterable[Exchange],
    artifacts: Artifacts,
    *,
    statement: str = "",
    credit: Credit = share_reward,
) -> list[Trajectory]:
    """Return the trajectories of a rollout, whose contents are stored as artifacts.

    Args:
        rollout: rollout with its value.
        exchanges: exchanges of its last run, in the order of their requests.
        artifacts: artifacts for the contents, and with the rollout's submission.
        statement: problem statement of the task, by which the main conversation is found.
        credit: divides the reward.

    Raises:
        Transient: the disk is full.
        UsageError: the credit function does not return a value for each trajectory.
    """
    return build_from_requests(rollout, read_requests(exchanges), artifacts, statement=statement, credit=credit)


def build_from_requests(
    rollout: Rollout,
    requests: Sequence[ModelRequest],
    artifacts: Artifacts,
    *,
    statement: str = "",
    credit: Credit = share_reward,
) -> list[Trajectory]:
    """Return the trajectories of a rollout, as `build_trajectories`, from its requests."""
    kept = [request for request in requests if not request.is_empty]
    forest = build_forest(kept)
    trees = [tree for tree in forest.list_trees() if any(kept[place].answer is not None for place in tree)]
    roles = assign_roles(kept, trees, statement)
    contents = [_pack_tree(kept, forest, tree) for tree in trees]
    values = divide_reward(credit, rollout, list(zip(roles, contents, strict=True)))
    submission = b"" if rollout.submission is None else extract_patch(artifacts.get(rollout.submission))
    main = [place for tree, role in zip(trees, roles, strict=True) if role is TrajectoryRole.MAIN for place in tree]
    made = []
    for root, (tree, role, content, value) in enumerate(zip(trees, roles, contents, values, strict=True)):
        acting = sorted(main) if role is TrajectoryRole.MAIN else tree
        evidence = TrajectoryEvidence(
            rollout=rollout,
            requests=[kept[place] for place in acting],
            later=kept,
            submission=submission,
        )
        made.append(
            Trajectory(
                parent=rollout.id,
                name=rollout.name,
                root=root,
                environment=rollout.environment,
                builder=BUILDER,
                role=role,
                scaffold=rollout.scaffold,
                model=rollout.model,
                attempt=rollout.attempt,
                value=value,
                n_requests=len(content.requests),
                n_branches=len(content.leaves),
                prompt_tokens=sum(request.prompt_tokens for request in content.requests),
                completion_tokens=sum(request.completion_tokens for request in content.requests),
                content=artifacts.put(write_content(content)),
                metrics=measure_all(evidence),
                has_token_ids=content.has_token_ids,
            )
        )
    return made


def _pack_tree(requests: Sequence[ModelRequest], forest: PrefixForest, tree: Sequence[int]) -> TrajectoryContent:
    places = {place: index for index, place in enumerate(tree)}
    parents = [forest.parents[place] for place in tree]
    return pack_content(
        [requests[place] for place in tree],
        [None if parent is None else places[parent] for parent in parents],
        has_token_ids=uses_token_ids(requests),
        is_ambiguous=tree[0] in forest.ambiguous,
    )
