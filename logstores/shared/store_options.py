"""The options of one store: the keys `optimist.store.<name>.<option>`, with or without `spark.`."""

from __future__ import annotations

from collections.abc import Mapping

from optimist.core.options.engine import STORE_PREFIX
from optimist.core.options.fields import options_under, unknown_option
from optimist.core.plugins.loading import relevant_options
from optimist.core.secrets import Options, Secret

__all__ = ["ensure_no_options", "options_from", "options_of_store"]


def options_of_store(class_path: str, options: Mapping[str, str]) -> Options:
    """Return the options by which `find_store` makes this store, whichever they name now.

    Args:
        class_path: The store, `package.module:Class`.
        options: The options to build it with.
    """
    kept = {
        key: value
        for key, value in relevant_options(options).items()
        if not key.removeprefix("spark.").startswith("delta.logStore.")
    }
    return Options({**kept, "delta.logStore.class": class_path})


def options_from(name: str, values: Mapping[str, object]) -> Options:
    """Write values as a store's options, without None and empty texts.

    Args:
        name: The store's short name.
        values: The values by the options' names; secrets may be wrapped.
    """
    texts = ((option, _text(value)) for option, value in values.items())
    return Options({f"{STORE_PREFIX}{name}.{option}": text for option, text in texts if text})


def ensure_no_options(options: Mapping[str, str], name: str) -> None:
    """Refuse any option of a store that has no options.

    Raises:
        ConfigError: A key of the store is given.
    """
    prefix = f"{STORE_PREFIX}{name}."
    for option in options_under(options, prefix):
        raise unknown_option(prefix + option, known=())


def _text(value: object) -> str:
    if isinstance(value, Secret):
        return str(value.reveal())
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
