"""All emulators, those that install fast and are needed most first."""

from __future__ import annotations

from azurite import AZURITE
from dynamodb import DYNAMODB
from emulator import Emulator
from gcs import GCS
from hdfs import HDFS
from redis_server import REDIS
from s3 import S3

__all__ = ["ROSTER"]

ROSTER: dict[str, Emulator] = {
    emulator.name: emulator for emulator in (REDIS, S3, AZURITE, DYNAMODB, GCS, HDFS)
}
