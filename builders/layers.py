"""Dependency layers, shared by all commits with the same dependencies, and source layers with the tree of a commit.

An image's name is the hash of its inputs, so an existing image is up to date and the order of builds has no effect. A
lock per name lets a single worker build while the others wait, across threads and processes.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

from backends.git import GitRepository
from backends.sandbox.execution import ExecResult
from backends.sandbox.images import BASE_IMAGE_LABEL, ImageInfo
from backends.services import Services
from builders import bases, layer_failures, source_tree
from builders.host_settings import collect_host_settings, merge_env
from core.errors import Transient
from dockerfiles.render import read_resource
from taskdb.records import BuildPlan

UV_CACHE_DIR = "/run/mergemill/uv"
"""uv's cache for the installs of a dependency layer; the sandbox removes the folder afterwards."""
LAYER_LABEL = "mergemill.layer"

CLEAN_TREE_PATH = "/run/mergemill/clean_tree.sh"
"""Path, while a source layer is made, of the script that restores a clean repository."""

NETWORK_FAILURE = re.compile(
    r"^(?!\[(?:info|debug)\] |.*\b(?:localhost|127\.0\.0\.1)\b).*?(?P<message>"
    r"error sending request|dns error|temporary failure in name resolution|connection (refused|reset)|timed out|"
    r"could not resolve (host|proxy|')|50[234] (server error|bad gateway|service unavailable|gateway))",
    re.IGNORECASE | re.MULTILINE,
)
"""Messages of tools about an unreachable host, not those about servers of their own, such as the daemon of a compiler.

Resolvers print `could not resolve` about versions, too: no match.
"""


@dataclass(frozen=True, kw_only=True)
class LayerBuild:
    """Outcome of making a layer. `image` is None when its command failed, `result` is None when the layer existed."""

    image: ImageInfo | None
    result: ExecResult | None


def build_dependency_layer(plan: BuildPlan, clone: GitRepository, services: Services) -> LayerBuild:
    """Return the dependency layer of a plan; it is made unless it exists. Failures are stored (`layer_failures`).

    Raises:
        Transient: engine or network failed.
    """
    name = plan.dependency_image
    with services.images.lock(name):
        if existing := services.images.inspect(name):
            return LayerBuild(image=existing, result=None)
        base = bases.ensure_base(plan.language, plan.language_version, services)
        if failure := layer_failures.load_failure(services, name, base.name):
            return LayerBuild(image=None, result=failure)
        result, image = _run_dependency_build(plan, clone, base, services)
        if image is not None and NETWORK_FAILURE.search(result.output):
            # An optional package was left out because of the network, not because it does not exist.
            services.images.remove(name)
            image = None
        _raise_network_failure(result, image)
        if image is None:
            layer_failures.save_failure(services, name, base.name, result)
        return LayerBuild(image=image, result=result)


def _run_dependency_build(
    plan: BuildPlan, clone: GitRepository, base: ImageInfo, services: Services
) -> tuple[ExecResult, ImageInfo | None]:
    files, env = collect_host_settings(services.settings.host)
    env |= {"MERGEMILL_PYTHON": base.labels.get(bases.PYTHON_LABEL, ""), "UV_CACHE_DIR": UV_CACHE_DIR}
    enter = (f"mkdir -p {plan.workdir} && cd {plan.workdir}",) if plan.manifests else ()
    with source_tree.open_manifest_tar(clone, plan.manifests, at=plan.workdir) as tree:
        return services.images.build(
            base.name,
            build_shell_command((*enter, *plan.dependency_steps)),
            plan.dependency_image,
            limits=services.build_limits(),
            files=files,
            tree=tree,
            env=merge_env(env, dict(plan.env) if plan.manifests else {}),
            keep_env={"PATH": bases.build_base_env(plan.language)["PATH"]},
            labels={
                LAYER_LABEL: "dependencies",
                bases.BASE_LABEL: base.labels.get(bases.BASE_LABEL, ""),
                BASE_IMAGE_LABEL: base.name,
            },
        )


def build_source_layer(plan: BuildPlan, clone: GitRepository, commit: str, repo: str, services: Services) -> LayerBuild:
    """Return the layer with the tree of `commit` on the plan's dependency layer, which must exist.

    Raises:
        Transient: engine or network failed.
        IncompleteCloneError: the clone lacks objects of the tree.
    """
    name = compute_source_image_name(plan, clone, commit, repo)
    with services.images.lock(name):
        if existing := services.images.inspect(name):
            return LayerBuild(image=existing, result=None)
        if can_install_offline(plan):
            result, image = _run_source_build(plan, clone, commit, name, services, network=False)
            if image is not None:
                return LayerBuild(image=image, result=result)
        result, image = _run_source_build(plan, clone, commit, name, services, network=True)
        _raise_network_failure(result, image)
        return LayerBuild(image=image, result=result)


def _run_source_build(
    plan: BuildPlan, clone: GitRepository, commit: str, name: str, services: Services, *, network: bool
) -> tuple[ExecResult, ImageInfo | None]:
    """Make the source layer once. The engine starts a container without network in a third of the time."""
    files, env = collect_host_settings(services.settings.host)
    files |= {CLEAN_TREE_PATH: read_resource("clean_tree.sh").encode()}
    env = merge_env(env, {"UV_NO_CACHE": "1", "UV_LINK_MODE": "copy", "PYTHONDONTWRITEBYTECODE": "1", **dict(plan.env)})
    command = build_shell_command((f"cd {plan.workdir}", *plan.source_steps, f"sh {CLEAN_TREE_PATH}"))
    with source_tree.open_tree_tar(clone, commit, at=plan.workdir) as tree:
        return services.images.build(
            plan.dependency_image,
            command,
            name,
            limits=services.build_limits(),
            tree=tree,
            files=files,
            env=env,
            keep_env={"PATH": bases.build_base_env(plan.language)["PATH"], **dict(plan.env)},
            workdir=plan.workdir,
            labels={LAYER_LABEL: "source"},
            network=network,
        )


def compute_source_image_name(plan: BuildPlan, clone: GitRepository, commit: str, repo: str) -> str:
    """Return the name of the source layer's image, with the hash of all its inputs."""
    parts = [
        plan.dependency_key,
        clone.resolve_tree(commit),
        source_tree.read_commit_date(clone, commit),
        plan.source_steps,
        read_resource("clean_tree.sh"),
        plan.workdir,
        plan.env,
    ]
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
    word = re.sub(r"[^a-z0-9]+", "-", repo.rpartition("/")[2].lower()).strip("-") or "repo"
    return f"mergemill/env:{word[:60]}-{key}"


def build_shell_command(steps: tuple[str, ...]) -> list[str]:
    """Return the steps as a command that stops at the first failing command (`set -e` ignores failures before `&&`)."""
    return ["/bin/bash", "-c", "set -o pipefail\numask 022\n" + "".join(f"{{ {s}\n}} || exit 1\n" for s in steps)]


def can_install_offline(plan: BuildPlan) -> bool:
    """Return whether the first method of each source step needs no network.

    Only then may the build run offline first: a step that succeeds offline has the same effect online.
    """
    return all(" --offline " in step.partition(" || ")[0] for step in plan.source_steps)


def _raise_network_failure(result: ExecResult, image: ImageInfo | None) -> None:
    """Raise Transient if the build failed because of the network, which is not a reason to reject the change."""
    if image is None and (match := NETWORK_FAILURE.search(result.output)):
        raise Transient(
            f"the network failed while building: {match['message']}", advice="run the same command again later"
        )
