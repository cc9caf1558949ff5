"""docs/s3.md names every option there is, and none that is not."""

import json
import re
from pathlib import Path

from optimist.core.options.fields import own_keys
from optimist.logstores.s3 import options as s3_options
from optimist.logstores.s3.options import S3Options

S3 = Path(s3_options.__file__).parent
OWN = own_keys(S3Options)
OF_OTHER_MEANING = {"aws.credentials.provider", "AnonymousAWSCredentialsProvider"}
PAGE = (Path(__file__).parents[2] / "docs" / "s3.md").read_text(encoding="utf-8")


def options_table():
    section = PAGE.partition("\n## Options\n")[2].partition("\n### ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return {row[0].strip(" `"): row[1] for row in rows}


def test_table_has_every_option_of_our_own():
    assert set(options_table()) == set(OWN)


def test_table_has_every_key_of_s3a_in_the_row_of_its_option():
    named = {
        option: set(re.findall(r"`([^`]+)`", cell)) - OF_OTHER_MEANING
        for option, cell in options_table().items()
    }
    assert named == {option: set(row.metadata["foreign"]) for option, row in OWN.items()}


def statements():
    policies = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    return {item["Sid"]: item for policy in policies for item in json.loads(policy)["Statement"]}


PERMISSIONS = {
    "abort_multipart_upload": "s3:AbortMultipartUpload",
    "complete_multipart_upload": "s3:PutObject",
    "create_multipart_upload": "s3:PutObject",
    "delete_object": "s3:DeleteObject",
    "delete_objects": "s3:DeleteObject",
    "get_object": "s3:GetObject",
    "list_multipart_uploads": "s3:ListBucketMultipartUploads",
    "list_objects_v2": "s3:ListBucket",
    "put_object": "s3:PutObject",
    "upload_part": "s3:PutObject",
}
"""What Amazon asks for each request."""


def test_permissions_shown_are_those_of_the_requests_that_are_made():
    sources = "".join(path.read_text(encoding="utf-8") for path in sorted(S3.glob("*.py")))
    called = set(re.findall(r"client\.([a-z_0-9]+)\(", sources)) - {"get_paginator"}
    called |= set(re.findall(r'get_paginator\("([a-z_]+)"\)', sources))
    assert called == set(PERMISSIONS)
    shown = statements()
    allowed = {*shown["FilesOfTables"]["Action"], *shown["Listings"]["Action"]}
    assert allowed == set(PERMISSIONS.values())


def test_policy_is_json_and_speaks_of_commits_only():
    statement = statements()["CommitsAreCreatedOnce"]
    pattern = statement["Resource"].rpartition("/")[2].replace(".", r"\.").replace("?", ".")
    assert re.fullmatch(pattern, f"{7:020d}.json")
    assert not re.fullmatch(pattern, f"{7:020d}.checkpoint.0-0.json")
    assert not re.fullmatch(pattern, f"{7:020d}.crc")
