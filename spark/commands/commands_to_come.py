"""Commands of `delta.tables` that are known by name and signature, and not built yet."""

from __future__ import annotations

from optimist.core.commands.not_built_yet import not_built_yet
from optimist.spark.session.arguments import ensure_value

__all__ = ["CommandsToCome"]


class CommandsToCome:
    """The methods of `DeltaTable` that are not built yet.

    Each checks its arguments as `delta.tables` does, and then raises a `UsageError` of the kind
    `OPTIMIST_NOT_BUILT_YET`, whose field `command` names the command. Nothing happens.
    """

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Take a feature out of the table's protocol."""
        ensure_value(featureName, str, "featureName", "a string")
        if truncateHistory is not None:
            ensure_value(truncateHistory, bool, "truncateHistory", "a boolean")
        raise not_built_yet("DROP FEATURE")
