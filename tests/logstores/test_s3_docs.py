"""docs/s3.md names every option there is, and none that is not."""

import json
import re
from pathlib import Path

from optimist.logstores.s3 import options as s3_options

PAGE = (Path(__file__).parents[2] / "docs" / "s3.md").read_text(encoding="utf-8")


def options_table():
    section = PAGE.partition("\n## Options\n")[2].partition("\n### ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return {row[0].strip(" `"): row[1] for row in rows}


def test_table_has_every_option_of_our_own():
    assert set(options_table()) == set(s3_options._OWN)


def test_table_has_every_key_of_s3a():
    named = {key for cell in options_table().values() for key in re.findall(r"`([^`]+)`", cell)}
    assert named - {"aws.credentials.provider", "AnonymousAWSCredentialsProvider"} == set(
        s3_options._FROM_S3A
    )


def test_key_and_option_of_a_row_mean_the_same():
    for option, cell in options_table().items():
        for key in re.findall(r"`([^`]+)`", cell):
            if key in s3_options._FROM_S3A:
                assert s3_options._FROM_S3A[key][0] == s3_options._OWN[option][0]


def test_policy_is_json_and_speaks_of_commits_only():
    (statement,) = json.loads(re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)[1])["Statement"]
    pattern = statement["Resource"].rpartition("/")[2].replace(".", r"\.").replace("?", ".")
    assert re.fullmatch(pattern, f"{7:020d}.json")
    assert not re.fullmatch(pattern, f"{7:020d}.checkpoint.0-0.json")
    assert not re.fullmatch(pattern, f"{7:020d}.crc")
