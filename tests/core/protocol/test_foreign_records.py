"""Hints, checksums, numbers and expressions of others: a value, or an error with a cause."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.core.errors import ConfigError, UsageError
from optimist.core.log.checksum import VersionChecksum, read_checksum
from optimist.core.log.last_checkpoint import LastCheckpoint, read_last_checkpoint
from optimist.core.log.names import LAST_CHECKPOINT, checksum_name
from optimist.core.options.engine import EngineOptions
from optimist.core.predicates import Predicate
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.schema.generated_rules import generation_rule
from optimist.core.testing import ManualClock
from optimist.logstores import MemoryLogStore

LOG = "memory://foreign/t/_delta_log"
MANY_DIGITS = "9" * 5_000
ODD_JSON = st.sampled_from(
    [
        "null",
        "true",
        "-1",
        "1.5",
        "1e999999",
        "NaN",
        "Infinity",
        "9" * 400,
        MANY_DIGITS,
        str(1 << 63),
        "0",
        '""',
        '"x"',
        '"\\ud800"',
        '"\\u0000"',
        "[]",
        "{}",
        "[" * 20_000,
        "[[1]]",
        '{"a":{"b":null}}',
        "",
    ]
) | st.text(max_size=20)
HINT = {"version": 10, "size": 3, "parts": 2, "sizeInBytes": 5, "numOfAddFiles": 1, "checksum": "x"}
CHECKSUM = json.loads(VersionChecksum(5, 1, Metadata("id", "{}"), Protocol(1, 2)).to_json()) | {
    "txnId": "t",
    "numDeletedRecordsOpt": 0,
    "numDeletionVectorsOpt": 0,
    "inCommitTimestampOpt": 5,
    "setTransactions": [{"appId": "a", "version": 1}],
    "domainMetadata": [{"domain": "d", "configuration": "{}", "removed": False}],
    "fileSizeHistogram": {"sortedBinBoundaries": [0], "fileCounts": [1], "totalBytes": [5]},
    "histogramOpt": None,
    "allFiles": [],
}
fuzzed = settings(max_examples=4 * settings.default.max_examples, deadline=None)


def mutated(document):
    """The text of a JSON object of which some values are something else, or of no object."""
    fields = st.fixed_dictionaries(
        {}, optional={key: st.just(json.dumps(value)) | ODD_JSON for key, value in document.items()}
    )
    return ODD_JSON | fields.map(
        lambda chosen: "{" + ",".join(f'"{key}":{text}' for key, text in chosen.items()) + "}"
    )


@fuzzed
@given(mutated(HINT))
def test_any_hint_is_taken_or_passed_over(text):
    store = MemoryLogStore()
    data = text.encode("utf-8", "surrogatepass")
    store.put_overwrite(f"{LOG}/{LAST_CHECKPOINT}", data)
    found = read_last_checkpoint(store, LOG, clock=ManualClock())
    assert found is None or isinstance(found, LastCheckpoint)
    if found is not None:
        assert 0 <= found.version < 1 << 63


@fuzzed
@given(mutated(CHECKSUM))
def test_any_checksum_is_taken_or_passed_over(text):
    store = MemoryLogStore()
    store.put_overwrite(f"{LOG}/{checksum_name(3)}", text.encode("utf-8", "surrogatepass"))
    found = read_checksum(store, LOG, 3)
    if found is not None:
        assert 0 <= found.num_files < 1 << 63
        assert 0 <= found.table_size_bytes < 1 << 63
        found.to_json().encode()


@pytest.mark.parametrize(
    "key",
    [
        "spark.databricks.delta.maxCommitAttempts",
        "spark.databricks.delta.write.txnVersion",
        "spark.databricks.io.skipping.stringPrefixLength",
    ],
)
@pytest.mark.parametrize("value", [MANY_DIGITS, str(1 << 63), "\N{ARABIC-INDIC DIGIT ONE}", "1_0"])
def test_an_option_of_any_digits_is_told_by_its_rule(key, value):
    with pytest.raises(ConfigError) as caught:
        EngineOptions.from_options({key: value})
    assert caught.value.kind == "OPTIMIST_INVALID_OPTION"
    assert "it must be a whole number" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"CAST(a AS DECIMAL({MANY_DIGITS}, 2)) > 1",
        f"CAST(a AS DECIMAL(10, {MANY_DIGITS})) > 1",
        f"a > CAST('1' AS DECIMAL({MANY_DIGITS}, 2))",
        f"a > {MANY_DIGITS}",
        f"a > {MANY_DIGITS}L",
        f"a > 1e{MANY_DIGITS}",
        f"a > 1e-{MANY_DIGITS}BD",
    ],
)
def test_a_predicate_of_any_digits_is_refused_as_spark_does(text):
    with pytest.raises(UsageError) as caught:
        Predicate.parse(text)
    assert caught.value.kind == "OPTIMIST_INVALID_PREDICATE"


def test_a_text_of_any_digits_is_no_number():
    assert Predicate.parse(f"a = CAST('{MANY_DIGITS}' AS BIGINT)").columns() == {("a",)}
    assert Predicate.parse(f"a > 1e-{MANY_DIGITS}F").is_exact


@pytest.mark.parametrize(
    "text",
    [
        f"substring(s, 1, {MANY_DIGITS})",
        "substring(s, 0, \N{SUPERSCRIPT TWO})",
        f"left(s, {MANY_DIGITS})",
    ],
)
def test_a_generation_expression_of_any_digits_gives_no_rule(text):
    assert generation_rule(text) is None
