"""The name of this engine in commits (spec 1.10)."""

from __future__ import annotations

__all__ = ["ENGINE_NAME", "is_own_engine"]

ENGINE_NAME = "Optimist"


def is_own_engine(engine_info: str | None) -> bool:
    """Return whether a commit's `engineInfo` names this engine, in any of its versions."""
    return any(word.startswith(f"{ENGINE_NAME}/") for word in (engine_info or "").split())
