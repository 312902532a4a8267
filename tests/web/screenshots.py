"""Screenshots of pages for the documentation: `python -m tests.web.screenshots` writes docs/images/serve-*.png."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser

from tests.web.browser import open_browser, watch_page
from tests.web.seed import SeededDatabase, seed_database
from tests.web.server import run_server

FOLDER = Path(__file__).parents[2] / "docs" / "images"
SIZE = {"width": 1200, "height": 760}


def list_shots(seeded: SeededDatabase) -> dict[str, tuple[str, str]]:
    """Return the name of each screenshot -> address and colour scheme."""
    return {
        "serve-overview": ("/", "light"),
        "serve-tasks": ("/tasks?kind=bugfix", "light"),
        "serve-task": (f"/tasks/{seeded.task}#statement", "light"),
        "serve-why": (f"/changes/{seeded.rejected}", "light"),
        "serve-rollout": (f"/rollouts/{seeded.rollout}", "dark"),
        "serve-bench": (f"/bench/{seeded.bench}#figures", "light"),
        "serve-runs": ("/runs", "dark"),
    }


def take_screenshots(browser: Browser, seeded: SeededDatabase, address: str, folder: Path) -> list[Path]:
    """Write all screenshots and return their paths."""
    taken = []
    for name, (path, scheme) in list_shots(seeded).items():
        with watch_page(browser, address, color_scheme=scheme, viewport=SIZE, reduced_motion="reduce") as watched:
            page = watched.open(path)
            page.wait_for_load_state("load")
            taken.append(folder / f"{name}.png")
            page.screenshot(path=taken[-1])
    return taken


def main() -> None:
    """Seed a database, serve it and write the screenshots."""
    with tempfile.TemporaryDirectory(prefix="mergemill-") as folder:
        seeded = seed_database(Path(folder))
        with run_server(seeded) as (_, address, _), open_browser() as browser:
            for path in take_screenshots(browser, seeded, address, FOLDER):
                sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
