"""The two layers made here: dependencies, shared by all commits that ask for the same, and the tree of one commit.

Names are made from what goes in, so an image that is there is the right one, and building in another order changes
nothing. A lock per name lets one worker build while the others wait, across threads and processes.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

from backends.git import Repository
from backends.sandbox.base import ImageInfo, Ran
from backends.services import Services
from builders import bases, failures, seed
from builders.borrowed import borrowed, over
from dockerfiles.render import text
from mergemill.errors import Transient
from taskdb.records import BuildPlan

CACHE = "/run/mergemill/uv"
"""uv's cache while a dependency layer is made, for its several installs; the sandbox removes the folder afterwards."""
LABEL = "mergemill.layer"

SETTLE = "/run/mergemill/settle.sh"
"""Where the script stands, while a source layer is made, that leaves a clean repository behind."""

NETWORK_TROUBLE = re.compile(
    r"error sending request|dns error|temporary failure in name resolution|connection (refused|reset)|timed out|"
    r"could not resolve (host|proxy|')|50[234] (server error|bad gateway|service unavailable|gateway)",
    re.IGNORECASE,
)
"""What tools print when a machine cannot be reached; a package that fits nothing is `could not resolve`, too."""


@dataclass(frozen=True, kw_only=True)
class Layer:
    """An attempt at a layer. `image` is None when its command failed, `ran` is None when it was there before."""

    image: ImageInfo | None
    ran: Ran | None


def dependencies(plan: BuildPlan, clone: Repository, services: Services) -> Layer:
    """The dependency layer of a plan, built when it is not there yet; a failure is remembered (`builders.failures`).

    Raises:
        Transient: engine or network failed.
    """
    name = plan.dependency_image
    with services.sandbox.lock(name):
        if found := services.sandbox.image(name):
            return Layer(image=found, ran=None)
        base = bases.ensure_base(plan.language, plan.language_version, services)
        if failed := failures.recall(services, name, base.name):
            return Layer(image=None, ran=failed)
        files, env = borrowed(services.settings)
        env |= {"MERGEMILL_PYTHON": base.labels.get(bases.PYTHON_LABEL, ""), "UV_CACHE_DIR": CACHE}
        steps = (
            (f"mkdir -p {plan.workdir} && cd {plan.workdir}", *plan.dependency_steps)
            if plan.manifests
            else plan.dependency_steps
        )
        with seed.manifest_stream(clone, plan.manifests, at=plan.workdir) as tree:
            ran, image = services.sandbox.build(
                base.name, shell(steps), name, limits=services.build_limits(), files=files, tree=tree,
                env=over(env, dict(plan.env) if plan.manifests else {}),
                keep_env={"PATH": bases.environment(plan.language)["PATH"]},
                labels={LABEL: "dependencies", bases.LABEL: base.labels.get(bases.LABEL, "")},
            )  # fmt: skip
        if image is not None and NETWORK_TROUBLE.search(ran.output):
            # An optional package that could not be fetched is no package that does not exist.
            services.sandbox.remove_image(name)
            image = None
        ran = _checked(ran, image)
        if image is None:
            failures.remember(services, name, base.name, ran)
        return Layer(image=image, ran=ran)


def source(plan: BuildPlan, clone: Repository, commit: str, repo: str, services: Services) -> Layer:
    """The layer with the tree of `commit` on the plan's dependency layer, which must be there.

    Raises:
        Transient: engine or network failed.
        IncompleteCloneError: the clone lacks objects of the tree.
    """
    name = source_name(plan, clone, commit, repo)
    with services.sandbox.lock(name):
        if found := services.sandbox.image(name):
            return Layer(image=found, ran=None)
        if offline_first(plan):
            ran, image = _source(plan, clone, commit, name, services, network=False)
            if image is not None:
                return Layer(image=image, ran=ran)
        ran, image = _source(plan, clone, commit, name, services, network=True)
        return Layer(image=image, ran=_checked(ran, image))


def _source(
    plan: BuildPlan, clone: Repository, commit: str, name: str, services: Services, *, network: bool
) -> tuple[Ran, ImageInfo | None]:
    """One attempt. Without network the engine starts a container in a third of the time."""
    files, env = borrowed(services.settings)
    files |= {SETTLE: text("settle.sh").encode()}
    env = over(env, {"UV_NO_CACHE": "1", "UV_LINK_MODE": "copy", "PYTHONDONTWRITEBYTECODE": "1", **dict(plan.env)})
    command = shell((f"cd {plan.workdir}", *plan.source_steps, f"sh {SETTLE}"))
    with seed.tar_stream(clone, commit, at=plan.workdir) as tree:
        ran, image = services.sandbox.build(
            plan.dependency_image, command, name, limits=services.build_limits(), tree=tree, files=files, env=env,
            keep_env={"PATH": bases.environment(plan.language)["PATH"], **dict(plan.env)}, workdir=plan.workdir,
            labels={LABEL: "source"}, network=network,
        )  # fmt: skip
    return ran, image


def source_name(plan: BuildPlan, clone: Repository, commit: str, repo: str) -> str:
    """Name of the source layer's image: everything that goes into it, hashed."""
    parts = [
        plan.dependency_key, clone.tree_id(commit), seed.commit_date(clone, commit), plan.source_steps,
        text("settle.sh"), plan.workdir, plan.env,
    ]  # fmt: skip
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
    word = re.sub(r"[^a-z0-9]+", "-", repo.rpartition("/")[2].lower()).strip("-") or "repo"
    return f"mergemill/env:{word[:60]}-{key}"


def shell(steps: tuple[str, ...]) -> list[str]:
    """The steps as one command that stops at the first that fails (`set -e` passes over failures before `&&`)."""
    return ["/bin/bash", "-c", "set -o pipefail\numask 022\n" + "".join(f"{{ {s}\n}} || exit 1\n" for s in steps)]


def offline_first(plan: BuildPlan) -> bool:
    """Whether the source's install begins with a way that needs no network.

    Only then it may be tried without: what works offline is what would have been done online, too.
    """
    return all(" --offline " in step.partition(" || ")[0] for step in plan.source_steps)


def _checked(ran: Ran, image: ImageInfo | None) -> Ran:
    """The run; where it failed for the network's sake, that is no verdict on the change."""
    if image is None and (match := NETWORK_TROUBLE.search(ran.output)):
        raise Transient(
            f"the network failed while building: {match.group()}", advice="run the same command again later"
        )
    return ran
