"""S3 with entries in DynamoDB, compatible with Delta's `S3DynamoDBLogStore` (spec 4).

*Assumes* one DynamoDB table in one region, and one spelling of the table's path, for all writers.

*Provides* both fences: Delta's DynamoDB protocol, attribute by attribute and step by step, and a
conditional PUT of N.json. Clusters with delta-spark's jar, `deltalake` (older releases can use
DynamoDB, too, and 1.6 only sends the condition), and Optimist can write one table.

*Does not provide* a second fence in delta-spark: it copies a staged commit without a condition, and
can overwrite the commit of a writer that does not use DynamoDB.

*Excludes* delta-spark with `S3DynamoDBLogStore`, deltalake, and Optimist.

All keys of Delta's store are supported (`spark.io.delta.storage.S3DynamoDBLogStore.*`).
"""

from __future__ import annotations

from typing import ClassVar

from optimist.logstores.s3.arbiter import S3ArbiterLogStore

__all__ = ["S3DynamoDBLogStore"]


class S3DynamoDBLogStore(S3ArbiterLogStore):
    """`S3ArbiterLogStore` with the arbiter `dynamodb` (see the module)."""

    arbiter_name: ClassVar[str | None] = "dynamodb"
