"""What `extra_config` says of the plugin: where pages lie, whose they are, and how many there may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hitproof.spec.errors import UsageError

__all__ = ["FACTS", "Settings", "read_settings"]

FACTS = ("weights", "attention_config", "adapter", "media", "salt", "scale_version")
"""What may be stated; all but the last are identity."""

PREFIX = "hitproof."


@dataclass(frozen=True, slots=True)
class Settings:
    """Where pages lie and whose they are.

    Args:
        folder: Folder of the pages; each worker has its own below it.
        capacity: Bytes of pages; None for no limit.
        stated: Identity facts that hold for every request of this server.
        tagged: Identity fact to the name of the tag of a request that states it, `lmcache.tag.<name>`.
        secret: Key of the records' authentication codes; None for none.
        rulebook: Name or folder of the rules.
    """

    folder: Path
    capacity: int | None
    stated: Mapping[str, str]
    tagged: Mapping[str, str]
    secret: bytes | None
    rulebook: str = "mixed_attention"

    def identity(self, tags: Mapping[str, str]) -> dict[str, str]:
        """Identity facts of a request with these tags, where they differ from what is stated."""
        return {fact: tags[name] for fact, name in self.tagged.items() if name in tags}


def read_settings(extra: Mapping[str, Any] | None) -> Settings:
    """Read and check the settings.

    Raises:
        UsageError: One is missing, unknown or of another type; or a fact is neither stated nor tagged, so that every
            page would be refused.
    """
    given = {name.removeprefix(PREFIX): value for name, value in (extra or {}).items() if str(name).startswith(PREFIX)}
    known = ("folder", "capacity_gb", "secret_file", "rulebook", "tags", *FACTS)
    strange = sorted(set(given) - set(known))
    if strange:
        raise UsageError("there is no such setting", got=PREFIX + strange[0], expected=", ".join(known))
    folder = given.get("folder")
    if not isinstance(folder, str) or not folder:
        raise UsageError("the folder of the pages is not stated", expected=f"extra_config['{PREFIX}folder']")
    tagged = given.get("tags", {})
    if not isinstance(tagged, Mapping) or not all(fact in FACTS and isinstance(tagged[fact], str) for fact in tagged):
        raise UsageError("tags lead from facts to names of tags", got=tagged, expected="such as {adapter: adapter}")
    stated = {fact: given[fact] for fact in FACTS if fact in given}
    for fact, value in stated.items():
        if not isinstance(value, str) or not value:
            raise UsageError(f"{PREFIX}{fact} is no text", got=value)
    for fact in ("weights", "adapter", "salt"):
        if fact not in stated and fact not in tagged:
            raise UsageError(
                f"nobody states the {fact}, so every page would be refused",
                expected=f"extra_config['{PREFIX}{fact}'], or a tag for it in '{PREFIX}tags'",
                hint="'none' says that there is none",
            )
    return Settings(
        Path(folder),
        _bytes(given.get("capacity_gb")),
        stated,
        dict(tagged),
        _secret(given.get("secret_file")),
        str(given.get("rulebook", "mixed_attention")),
    )


def _bytes(gigabytes: Any) -> int | None:
    if gigabytes is None:
        return None
    if isinstance(gigabytes, bool) or not isinstance(gigabytes, int | float) or not gigabytes > 0:
        raise UsageError("the capacity is no number of gigabytes", got=gigabytes)
    return int(gigabytes * 2**30)


def _secret(path: Any) -> bytes | None:
    if path is None:
        return None
    try:
        secret = Path(str(path)).read_bytes().strip()
    except OSError as error:
        raise UsageError("the secret cannot be read", got=error) from error
    if not 0 < len(secret) <= 64:
        raise UsageError("the secret cannot be used", got=f"{len(secret)} bytes", expected="1 to 64 bytes")
    return secret
