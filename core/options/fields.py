"""Options as fields: each field states its key, its parser and its default in one place.

A component's options are one frozen dataclass. `option` makes each field that a user may set, and
`parse_options` finds the values in any mapping, such as a Spark conf. The engine, the stores and
the locks all work this way, so the same mistake gets the same error everywhere: an unknown option,
a value that does not parse, two spellings that differ, or a missing option.

An error names the key as its user wrote it. It never shows a value, which may be a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, field, fields
from typing import Any

from optimist.core.errors import ConfigError
from optimist.core.options.values import parse_option
from optimist.core.secrets import Options

__all__ = [
    "SECRET_MARK",
    "contradicting_options",
    "foreign_option",
    "key_of_field",
    "keys_by_name",
    "option",
    "options_under",
    "own_keys",
    "own_values",
    "parse_fields",
    "parse_foreign_options",
    "parse_options",
    "unknown_option",
]

SECRET_MARK = "secret."
"""A word that may stand before the name of any option of a store or a lock, because Spark hides the
values of keys that contain it: `optimist.store.redis.secret.url` means `optimist.store.redis.url`.
"""


def option(
    default: Any = MISSING,
    parse: Callable[[str], Any] = str,
    *keys: str,
    foreign: tuple[str, ...] = (),
    missing: str = "",
) -> Any:
    """Make a dataclass field that a user may set.

    Args:
        default: The value without the option. Leave it out for an option that must be set.
        parse: Makes the value from the text, whose surrounding blanks are removed; `Secret` for a
            secret. Raises a `ValueError` that says how the text must be, as a phrase that begins
            with "must".
        keys: The option's names, below the prefix of its component. The default is the field's name
            in camel case, with `Seconds` for a final `_s`.
        foreign: The option's names in another family of keys, the strongest first.
        missing: The remedy for an option that must be set, for example `say where the server is`.
    """
    metadata = {"keys": keys, "parse": parse, "foreign": foreign, "missing": missing}
    return field(default=default, metadata=metadata)


def foreign_option(default: Any, parse: Callable[[str], Any], *foreign: str) -> Any:
    """Make a field that only keys of another family set (see `option`)."""
    return field(default=default, metadata={"parse": parse, "foreign": foreign})


def parse_options(cls: type[Any], options: Mapping[str, str], prefix: str) -> dict[str, Any]:
    """Return the values that the options under a prefix set, by field name.

    Args:
        cls: The dataclass.
        options: Any mapping; the function ignores keys without the prefix.
        prefix: For example `optimist.store.redis.`. In a key, `spark.` may stand before it, and
            `SECRET_MARK` after it.

    Raises:
        ConfigError: An option under the prefix is unknown, does not parse, is missing, or is given
            in two spellings that differ.
    """
    known = own_keys(cls)

    def name_of(key: str) -> str | None:
        bare = _name_below(prefix, key)
        if bare is not None and bare not in known:
            raise unknown_option(key, known)
        return None if bare is None else known[bare].name

    values = parse_fields(cls, options, name_of)
    for key, row in known.items():
        if row.metadata["missing"] and not values.get(row.name):
            raise ConfigError(
                f"The option {prefix}{key} is missing: {row.metadata['missing']}.",
                kind="OPTIMIST_MISSING_OPTION",
                key=prefix + key,
            )
    return values


def parse_fields(
    cls: type[Any], options: Mapping[str, str], name_of: Callable[[str], str | None]
) -> dict[str, Any]:
    """Return the values that the options set, by field name.

    Args:
        cls: The dataclass.
        options: Any mapping.
        name_of: Gives the field's name for a key, or None for a key that is not ours.

    Raises:
        ConfigError: A value does not parse, or two spellings of an option differ.
    """
    parsers = {each.name: each.metadata["parse"] for each in own_keys(cls).values()}
    return {
        name: parse_option(options, key, parsers[name])
        for name, key in keys_by_name(options, name_of).items()
    }


def parse_foreign_options(
    cls: type[Any], given: Mapping[str, str], prefix: str = ""
) -> dict[str, Any]:
    """Return the values that keys of another family set, by field name.

    If the mapping has several keys of one field, the strongest one wins.

    Args:
        cls: The dataclass.
        given: Options of that family, without their prefix. The function ignores keys of no field.
        prefix: The prefix that was cut off, for messages.

    Raises:
        ConfigError: A value does not parse.
    """
    found = {}
    for row in fields(cls):
        keys = [key for key in row.metadata.get("foreign", ()) if key in given]
        if keys:
            parse = row.metadata["parse"]
            found[row.name] = parse_option(given, keys[0], parse, key=prefix + keys[0])
    return found


def options_under(options: Mapping[str, str], prefix: str) -> Options:
    """Return the options under a prefix (with or without `spark.`), and cut the prefix off.

    Raises:
        ConfigError: Two spellings of an option differ.
    """
    keys = keys_by_name(options, lambda key: _name_below(prefix, key))
    return Options({name: options[key] for name, key in keys.items()})


def keys_by_name(
    options: Mapping[str, str], name_of: Callable[[str], str | None]
) -> dict[str, str]:
    """Return the key that gives each option, by the option's name: the first if there are several.

    Args:
        options: Any mapping.
        name_of: Gives the option's name for a key, or None to ignore the key.

    Raises:
        ConfigError: Two spellings of an option differ.
    """
    keys: dict[str, str] = {}
    for key in options:
        name = name_of(key)
        if name is None:
            continue
        first = keys.setdefault(name, key)
        if _without_blanks(options[first]) != _without_blanks(options[key]):
            raise contradicting_options(first, key)
    return keys


def own_keys(cls: type[Any]) -> Mapping[str, Field[Any]]:
    """Return the fields of a dataclass that users may set, by key (one field may have several)."""
    rows = [each for each in fields(cls) if "keys" in each.metadata]
    return {key: row for row in rows for key in row.metadata["keys"] or (key_of_field(row.name),)}


def own_values(settings: Any) -> dict[str, Any]:
    """Return the current values of the fields that users may set, by key."""
    return {key: getattr(settings, row.name) for key, row in own_keys(type(settings)).items()}


def key_of_field(name: str) -> str:
    """Return the default key of a field: `readTimeoutSeconds` for `read_timeout_s`."""
    first, *others = name.split("_")
    if others and others[-1] == "s":
        others[-1] = "seconds"
    return first + "".join(each.capitalize() for each in others)


def unknown_option(key: str, known: Iterable[str]) -> ConfigError:
    """Return the error for a key that no option has."""
    names = ", ".join(sorted(known))
    remedy = f"The known options are: {names}." if names else "Remove it; none is known here."
    return ConfigError(
        f"The option {key} is unknown. {remedy}",
        kind="OPTIMIST_UNKNOWN_OPTION",
        key=key,
    )


def contradicting_options(
    first: str, second: str, why: str = "they are two spellings of one option"
) -> ConfigError:
    """Return the error for two keys that contradict each other."""
    return ConfigError(
        f"The options {first} and {second} contradict each other: {why}. Keep one.",
        kind="OPTIMIST_CONTRADICTING_OPTIONS",
        keys=(first, second),
    )


def _name_below(prefix: str, key: str) -> str | None:
    bare = key.removeprefix("spark.")
    return bare[len(prefix) :].removeprefix(SECRET_MARK) if bare.startswith(prefix) else None


def _without_blanks(value: object) -> object:
    return value.strip() if isinstance(value, str) else value
