"""States of images: digests of their files, by which a grader sees that a container is as its image made it.

Formats whose harness runs a script in a single container need them. A state is read once for each image, in a container
of it, and kept in the store.
"""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING

from core.errors import InputError, MachineError, Transient
from exporters.task_files import read_container_file
from taskdb.artifacts import write_atomically

if TYPE_CHECKING:
    from backends.services import Services
    from exporters.item import ExportItem
    from taskdb.records import Task

NO_STATE_NOTE = "the script does not check its container, as the image is not on the engine that exported it"
"""Note in the manifest for a task whose state is not known."""
ONE_CONTAINER = """\
## What is weaker than in other formats

The harness runs one script in one container, and the script grades there: several evaluations, in each of which
a secret coin decides which tests are real. Code under test runs as user `mergemill` and cannot read coins or
hidden tests; an agent with the rights of root that worked in the same container could.

- Use a fresh container of the row's image for each submission, into which only the patch comes. Then nothing is
  weaker.
- Where the agent worked in the container, the script compares it with its image first, and refuses a container
  in which programs, libraries, packages, configuration, root's start files or the objects of the repository
  differ, which has other processes of root, or variables such as `LD_PRELOAD`. Then all tests count as failed,
  and the output names what differs.
- Packages and programs that were added are deleted before the tests run, and so is what was added to the home
  folder of `mergemill`. A changed version of a package, or one of the system, cannot be restored: the
  submission earns 0, even an honest one.
- Not compared is what user `mergemill` can write (ignored folders of the tree such as `node_modules`, caches),
  `/root`, `/tmp` and caches of the system. Results that are forged there face the sabotaged tests.
- Root can replace bash, the loader or Python by one that hides it, and change the memory of other processes. No
  script sees that from inside: give the agent no rights of root, or use a format with a separate verifier, such
  as `harbor`.
"""
"""Section of a README about formats whose harness runs a script in a single container."""
_FOLDER = "/tmp/mergemill-state"  # noqa: S108 - in a container of its own; what lies there belongs to no state


def add_image_state(item: ExportItem, services: Services) -> bytes | None:
    """Return the state of an item's image (see `read_image_state`); where it is not known, the item gets a note."""
    state = read_image_state(item.task, services)
    if state is None:
        item.notes.append(NO_STATE_NOTE)
    return state


def read_image_state(task: Task, services: Services) -> bytes | None:
    """Return the state of a task's image as JSON; None where this engine does not have the certified image.

    Raises:
        Transient: the engine failed while it read the image.
    """
    try:
        info = services.images.inspect(task.image)
    except (MachineError, Transient):  # an export needs no engine
        return None
    if info is None or info.digest != task.image_digest:
        return None
    program = read_container_file("image_state.py")
    folder = services.settings.storage.store_dir / "image-states"
    path = folder / f"{info.digest.rpartition(':')[2]}-{hashlib.sha256(program).hexdigest()[:16]}.json"
    if path.is_file():
        return path.read_bytes()
    content = _run_program(task, program, services)
    with contextlib.suppress(InputError, Transient):  # the store may be only readable
        write_atomically(path, content, folder)
    return content


def _run_program(task: Task, program: bytes, services: Services) -> bytes:
    script, state = f"{_FOLDER}/image_state.py", f"{_FOLDER}/state.json"
    result = services.sandbox.run(
        task.image,
        ["python3", "-I", "-S", "-B", script, task.require_plan().workdir, state],
        limits=services.build_limits(),
        files={script: program},
        collect=[state],
    )
    content = result.files.get(state)
    if content is None:
        raise Transient(f"the state of {task.image} cannot be read: {result.output[-300:]}", advice="export again")
    return content
