"""The versions and features that a configuration asks of the protocol (spec 6.4)."""

from __future__ import annotations

from collections.abc import Mapping

from optimist.core.errors import ConfigError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.protocol.features import Feature, feature_by_any_case
from optimist.core.protocol.properties import FEATURE_PREFIX, PROPERTIES

__all__ = ["requested_features", "requested_version"]


def requested_features(configuration: Mapping[str, str], *, is_new_table: bool) -> frozenset[str]:
    """Return the features that a configuration asks for by `delta.feature.*`, in any case.

    Raises:
        ConfigError: See `gates.requested_protocol`.
    """
    names = frozenset(
        _requested_feature(key, status).name
        for key, status in configuration.items()
        if key.lower().startswith(FEATURE_PREFIX)
    )
    if "clustering" in names:
        raise _clustering_by_property(is_new_table)
    return names


def requested_version(configuration: Mapping[str, str], name: str) -> int:
    """Return a version of the protocol that a configuration asks for, or 1 if it asks for none.

    Raises:
        ConfigError: The version does not parse or is out of range
            (`OPTIMIST_INVALID_TABLE_PROPERTY`).
    """
    for key, value in configuration.items():
        if key.lower() == name.lower():
            try:
                return int(PROPERTIES[name].kind.parse(value))
            except ValueError as error:
                raise ConfigError(
                    f"The conf key {name} can't be {quoted(value)}: it {shown(error)}. Nothing was "
                    "written.",
                    kind="OPTIMIST_INVALID_TABLE_PROPERTY",
                    property=name,
                    value=value,
                ) from None
    return 1


def _requested_feature(key: str, status: str) -> Feature:
    name = key[len(FEATURE_PREFIX) :]
    feature = feature_by_any_case(name)
    if feature is None:
        raise ConfigError(
            f"The table property {shown(key)} asks for a table feature that this engine does not "
            f"know: {shown(name)}. Nothing was written. Check its spelling.",
            kind="DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
            feature=name,
        )
    if status.strip().lower() not in ("supported", "enabled"):
        raise ConfigError(
            f"The table property {shown(key)} can't be {quoted(status)}, only 'supported'. Nothing "
            "was written. To remove a feature, drop it.",
            kind="DELTA_UNSUPPORTED_FEATURE_STATUS",
            feature=feature.name,
            status=status,
        )
    return feature


def _clustering_by_property(is_new_table: bool) -> ConfigError:
    kind = (
        "DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED"
        if is_new_table
        else "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED"
    )
    return ConfigError(
        "The table property delta.feature.clustering says that a table is clustered, but not by "
        "which columns. Nothing was written. Leave it out; CLUSTER BY adds the feature together "
        "with the columns.",
        kind=kind,
        feature="clustering",
    )
