"""deltalake's `storage_options` reach our stores, and no report shows their values."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import optimist.deltalake as ours
from optimist.core.errors import ConfigError
from optimist.deltalake.exceptions import DeltaError, DeltaUsageError
from optimist.deltalake.storage_options import engine_options
from optimist.logstores.azure.options import AzureOptions
from optimist.logstores.gcs.options import GCSOptions
from optimist.logstores.s3.options import S3Options

SECRET = "TopSecret/Zm9v+0123=="


def test_the_keys_of_s3_in_any_case_are_ours() -> None:
    given = {
        "AWS_ACCESS_KEY_ID": "id",
        "aws_secret_access_key": SECRET,
        "Aws_Region": "eu-north-1",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9000",
        "AWS_ALLOW_HTTP": "true",
        "AWS_S3_ALLOW_UNSAFE_RENAME": "true",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
        "aws_conditional_put": "etag",
    }
    found = S3Options.from_options(engine_options(given))
    assert found.access_key is not None
    assert found.secret_key is not None
    assert (found.access_key.reveal(), found.secret_key.reveal()) == ("id", SECRET)
    assert (found.region, found.endpoint) == ("eu-north-1", "http://127.0.0.1:9000")
    assert found.path_style is True


def test_the_lock_of_dynamodb_is_the_store_that_shares_its_table() -> None:
    given = {"AWS_S3_LOCKING_PROVIDER": "dynamodb", "DELTA_DYNAMO_TABLE_NAME": "locks"}
    assert dict(engine_options(given)) == {
        "spark.delta.logStore.s3.impl": "s3-dynamodb",
        "io.delta.storage.S3DynamoDBLogStore.ddb.tableName": "locks",
    }


def test_the_keys_of_azure_and_google_are_ours() -> None:
    azure = AzureOptions.from_options(
        engine_options({"AZURE_STORAGE_ACCOUNT_NAME": "acc", "account_key": "a2V5"})
    )
    assert azure.account == "acc"
    google = GCSOptions.from_options(engine_options({"GOOGLE_SERVICE_ACCOUNT_KEY": "{}"}))
    assert google.key_json is not None


def test_our_own_options_pass(tmp_path: Path) -> None:
    ours.write_deltalake(
        tmp_path,
        pa.table({"a": [1]}),
        storage_options={"spark.databricks.delta.commitInfo.userMetadata": "mine"},
    )
    assert ours.DeltaTable(tmp_path).history()[0]["userMetadata"] == "mine"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"FOO": SECRET}, "FOO"),
        ({"aws_conditional_put": "dynamo"}, "aws_conditional_put"),
        ({"locking_provider": "redis"}, "locking_provider"),
        ({"optimist.nonsense": SECRET}, "optimist.nonsense"),
    ],
)
def test_an_option_without_a_meaning_is_refused_by_its_name(
    tmp_path: Path, given: dict[str, str], named: str
) -> None:
    with pytest.raises(DeltaError, match=named) as error:
        ours.DeltaTable(tmp_path, storage_options=given)
    assert SECRET not in str(error.value)


def test_two_spellings_of_one_option_must_agree() -> None:
    with pytest.raises(ConfigError, match="contradict"):
        engine_options({"aws_region": "a", "AWS_DEFAULT_REGION": "b"})
    assert len(engine_options({"aws_region": "a", "AWS_DEFAULT_REGION": "a"})) == 1
    with pytest.raises(ValueError, match="options"):
        engine_options(["a"])  # type: ignore[arg-type]


def test_no_report_of_a_crash_shows_a_value(tmp_path: Path) -> None:
    import traceback

    options = {"AWS_SECRET_ACCESS_KEY": SECRET, "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": SECRET}
    for call in (
        lambda: ours.DeltaTable(tmp_path, storage_options=options),
        lambda: ours.DeltaTable.is_deltatable(tmp_path, options),
        lambda: ours.write_deltalake(tmp_path, pa.table({"a": [1]}), storage_options=options),
        lambda: ours.convert_to_deltalake(tmp_path, storage_options=options),
        lambda: ours.DeltaTable.create(tmp_path, pa.schema([]), storage_options=options),
    ):
        with pytest.raises(DeltaUsageError) as error:
            call()
        told = traceback.TracebackException.from_exception(error.value, capture_locals=True)
        here = [frame for frame in told.stack if "deltalake" in frame.filename]
        here = [frame for frame in here if "tests" not in frame.filename]
        assert here
        assert not [frame for frame in here if SECRET in str(frame.locals)]
