"""Screenshots of pages for the documentation: `python -m tests.web.screenshots` writes docs/images/serve-*.png."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser

from tests.web.browser import open_browser, watch_page
from tests.web.seed import SeededDatabase, seed_database
from tests.web.server import run_server

FOLDER = Path(__file__).parents[2] / "docs" / "images"
SCREEN, PHONE = (1200, 760), (320, 640)
"""Width and height in CSS pixels."""


class Shot(NamedTuple):
    """Page of a screenshot. `scheme`: `light` or `dark`; `size`: that of the window."""

    path: str
    scheme: str
    size: tuple[int, int] = SCREEN


def list_shots(seeded: SeededDatabase) -> dict[str, Shot]:
    """Return screenshots by name."""
    figures = f"/bench/{seeded.bench}#figures"
    return {
        "serve-overview": Shot("/", "light"),
        "serve-tasks": Shot("/tasks?kind=bugfix", "light"),
        "serve-task": Shot(f"/tasks/{seeded.task}#statement", "light"),
        "serve-why": Shot(f"/changes/{seeded.rejected}", "light"),
        "serve-rollout": Shot(f"/rollouts/{seeded.rollout}", "dark"),
        "serve-benches": Shot("/bench", "light"),
        "serve-bench": Shot(figures, "light"),
        "serve-benches-phone": Shot("/bench", "light", PHONE),
        "serve-bench-phone": Shot(figures, "light", PHONE),
        "serve-runs": Shot("/runs", "dark"),
    }


def take_screenshots(browser: Browser, seeded: SeededDatabase, address: str, folder: Path) -> list[Path]:
    """Write all screenshots and return their paths."""
    taken = []
    for name, shot in list_shots(seeded).items():
        size = dict(zip(("width", "height"), shot.size, strict=True))
        options = {"color_scheme": shot.scheme, "viewport": size, "reduced_motion": "reduce"}
        with watch_page(browser, address, **options) as watched:
            page = watched.open(shot.path)
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
