"""The object services that have a fake here, with the store for each."""

from collections.abc import Callable
from dataclasses import dataclass

from fake_blob_service import FakeBlobService
from fake_json_api import FakeJsonApi
from fake_s3_service import FakeS3Service
from optimist.core.plugins.logstore import LogStore
from optimist.logstores.azure.store import AzureLogStore
from optimist.logstores.gcs.store import GCSLogStore
from optimist.logstores.s3.store import S3LogStore
from scripted_http import ScriptedService


@dataclass(frozen=True)
class Service:
    """A service: its fake, its store, the URL of its bucket, and some of its answers.

    `busy` says come again later, `failed` that the server is at fault, `no_bucket` that there is no
    such bucket or container.
    """

    name: str
    fake: Callable[..., ScriptedService]
    store: Callable[..., LogStore]
    root: str
    busy: tuple[int, str]
    failed: tuple[int, str]
    no_bucket: tuple[int, str]

    def url(self, key):
        return f"{self.root}/{key}"


AZURE = Service(
    "azure",
    FakeBlobService,
    AzureLogStore,
    "az://box",
    busy=(503, "ServerBusy"),
    failed=(500, "InternalError"),
    no_bucket=(404, "ContainerNotFound"),
)
GCS = Service(
    "gcs",
    FakeJsonApi,
    GCSLogStore,
    "gs://box",
    busy=(503, "backendError"),
    failed=(500, "internalError"),
    no_bucket=(404, "notFound"),
)
S3 = Service(
    "s3",
    FakeS3Service,
    S3LogStore,
    "s3://box",
    busy=(503, "SlowDown"),
    failed=(500, "InternalError"),
    no_bucket=(404, "NoSuchBucket"),
)
SERVICES = (AZURE, GCS)
