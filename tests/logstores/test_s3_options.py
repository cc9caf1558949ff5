"""The options of S3LogStore: the keys of S3A that users have, ours, and what makes no sense."""

import pytest

from optimist.core.errors import ConfigError
from optimist.core.secrets import Secret
from optimist.logstores.s3.options import S3Options

KEYS = {
    "fs.s3a.endpoint": "http://127.0.0.1:9000",
    "fs.s3a.endpoint.region": "eu-central-1",
    "fs.s3a.access.key": "ACCESS",
    "fs.s3a.secret.key": "SECRET",
    "fs.s3a.session.token": "TOKEN",
    "fs.s3a.requester.pays.enabled": "true",
    "fs.s3a.encryption.algorithm": "SSE-KMS",
    "fs.s3a.encryption.key": "arn:aws:kms:key",
}


@pytest.mark.parametrize("prefix", ["", "spark.", "spark.hadoop.", "hadoop."])
def test_keys_of_s3a_are_understood_in_every_spelling(prefix):
    options = S3Options.from_options({prefix + key: value for key, value in KEYS.items()})
    assert options.endpoint == "http://127.0.0.1:9000"
    assert options.region == "eu-central-1"
    assert (options.access_key, options.secret_key) == (Secret("ACCESS"), Secret("SECRET"))
    assert options.session_token == Secret("TOKEN")
    assert options.requester_pays
    assert (options.encryption, options.encryption_key) == ("aws:kms", Secret("arn:aws:kms:key"))
    assert options.path_style, "an endpoint other than Amazon's wants the bucket in the path"


def test_key_of_a_bucket_wins_there_and_nowhere_else():
    given = {**KEYS, "fs.s3a.bucket.mine.endpoint.region": "us-west-2"}
    assert S3Options.from_options(given, bucket="mine").region == "us-west-2"
    assert S3Options.from_options(given, bucket="other").region == "eu-central-1"


def test_our_own_key_wins_over_that_of_s3a():
    given = {**KEYS, "spark.optimist.store.s3.region": "ap-south-1"}
    assert S3Options.from_options(given).region == "ap-south-1"


@pytest.mark.parametrize(
    ("endpoint", "region", "found"),
    [
        ("s3.eu-west-1.amazonaws.com", "eu-west-1", "https://s3.eu-west-1.amazonaws.com"),
        ("s3.amazonaws.com", None, "https://s3.amazonaws.com"),
        ("minio:9000", None, "https://minio:9000"),
    ],
)
def test_endpoint_without_a_scheme_is_read_as_s3a_reads_it(endpoint, region, found):
    options = S3Options.from_options({"fs.s3a.endpoint": endpoint})
    assert (options.endpoint, options.region) == (found, region)


def test_endpoint_without_tls_goes_by_the_key_for_it():
    given = {"fs.s3a.endpoint": "minio:9000", "fs.s3a.connection.ssl.enabled": "false"}
    assert S3Options.from_options(given).endpoint == "http://minio:9000"


def test_secrets_do_not_show():
    shown = repr(S3Options.from_options(KEYS))
    assert not any(secret in shown for secret in ("ACCESS", "SECRET", "TOKEN", "arn:"))


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"fs.s3a.access.key": "A"}, "OPTIMIST_INVALID_OPTION"),
        ({"optimist.store.s3.regoin": "x"}, "OPTIMIST_UNKNOWN_OPTION"),
        ({"optimist.store.s3.readTimeoutSeconds": "-1"}, "OPTIMIST_INVALID_OPTION"),
        ({"fs.s3a.path.style.access": "perhaps"}, "OPTIMIST_INVALID_OPTION"),
        ({"fs.s3a.encryption.algorithm": "CSE-KMS"}, "OPTIMIST_INVALID_OPTION"),
        ({"fs.s3a.encryption.algorithm": "SSE-C"}, "OPTIMIST_INVALID_OPTION"),
        (
            {"fs.s3a.aws.credentials.provider": "o.a.h.fs.s3a.auth.AssumedRoleCredentialProvider"},
            "OPTIMIST_UNSUPPORTED_OPTION",
        ),
        (
            {"fs.s3a.access.key": "A", "spark.hadoop.fs.s3a.access.key": "B"},
            "OPTIMIST_CONTRADICTING_OPTIONS",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(given, kind):
    with pytest.raises(ConfigError) as caught:
        S3Options.from_options(given)
    assert caught.value.kind == kind
