"""Settings of the database and the store beside it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from pydantic import field_validator

from core.settings.group import SettingsGroup


class StorageSettings(SettingsGroup):
    """Where records, artifacts and clones are kept."""

    db: str = "sqlite:///mergemill.db"
    """Database: a file, or a URL (`sqlite:///FILE`, `postgresql+psycopg://...`)."""
    store: Path | None = None
    """Folder of artifacts and clones. Default: `mergemill-store/` beside the database."""
    artifacts: str | None = None
    """Where artifacts are kept: a folder, or a URL such as `s3://BUCKET/PREFIX`. Default: `artifacts/` in --store."""

    @field_validator("db")
    @classmethod
    def _resolve_database(cls, value: str) -> str:
        """Return the URL of a database that is named by its file."""
        return value if ":" in value else f"sqlite:///{Path(value).expanduser()}"

    @field_validator("artifacts")
    @classmethod
    def _check_artifacts(cls, value: str | None) -> str | None:
        """Return a folder as it is, and a URL without a slash at the end."""
        if value is None or "://" not in value:
            return value
        parts = urlsplit(value)
        if parts.password:
            raise ValueError("contains a password; credentials belong where the store's tools look for them")
        if not (parts.netloc or parts.path.strip("/")):
            raise ValueError("names no bucket or folder")
        return value.rstrip("/")

    @property
    def store_dir(self) -> Path:
        """Folder of artifacts and clones."""
        if self.store is not None:
            return self.store
        prefix = "sqlite:///"
        beside = Path(self.db.removeprefix(prefix)).parent if self.db.startswith(prefix) else Path()
        return beside / "mergemill-store"

    @property
    def artifact_place(self) -> Path | str:
        """Folder of the artifacts, or their URL."""
        if self.artifacts is None:
            return self.store_dir / "artifacts"
        if self.artifacts.startswith("file://"):
            return Path(self.artifacts.removeprefix("file://"))
        return self.artifacts if "://" in self.artifacts else Path(self.artifacts).expanduser()
