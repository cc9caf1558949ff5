"""Logs on S3 and on S3-compatible stores (spec 3.4).

*Assumes* a store that honours `If-None-Match: *` on PutObject, and shows written objects at once in
reads and listings: Amazon's, since 2024, for all buckets. Each bucket is probed before the first
write (see `create_probe`).

*Provides* for the files of a log: mutual exclusion between threads, processes and machines by one
conditional PUT; atomic visibility; consistent listing. A lost answer is reported as unknown, never
as a lost race. A commit that somebody overwrote is detected (see `overwritten_commits`).

*Does not provide* exclusion of writers that do not send the condition, nor of writers that ask an
arbiter in DynamoDB first: it refuses to write to a table whose log has staged commits
(`_delta_log/.tmp/`).

*Excludes* other Optimist processes, and the writers of `deltalake` 1.x. It does not exclude
delta-spark, neither with its default store, which overwrites, nor with `S3DynamoDBLogStore`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, BinaryIO

from optimist.core.errors import ConfigError, StorageError
from optimist.core.forking import ForkSafeLock, keep_inherited, renew_in_child
from optimist.core.log.names import commit_name
from optimist.core.paths import LOG_DIRECTORY, join
from optimist.core.plugins.data_access import DataAccess
from optimist.core.plugins.data_origin import DataOrigin
from optimist.core.plugins.logstore import FileStatus, LogStore, PutOutcome
from optimist.core.runtime.clock import Clock, SystemClock
from optimist.logstores.s3.bucket import S3Bucket
from optimist.logstores.s3.client import S3Credentials, make_clients
from optimist.logstores.s3.data import s3_origin
from optimist.logstores.s3.options import S3Options
from optimist.logstores.s3.path import S3Location
from optimist.logstores.s3.reader import READ_RETRIES, open_ranged
from optimist.logstores.shared.create_probe import (
    STORE_UNSUPPORTED,
    describe_verdicts,
    ensure_exclusive,
    probe_once,
)
from optimist.logstores.shared.overwritten_commits import (
    CommitIdentity,
    KnownCommits,
    commit_replaced,
    is_commit,
)

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import ObjectTypeDef

__all__ = ["S3LogStore"]

_LOG = logging.getLogger(__name__)
_STAGED = ".tmp/"


class S3LogStore(LogStore):
    """A log whose commits are created by one conditional PUT.

    Paths are `s3:`, `s3a:` or `s3n:` URLs.

    Args:
        options: See `S3Options`; a plain mapping, for example the entries of a Spark conf.
        clock: Paces repeated requests, and names probes.
        credentials: Returns credentials, and is called again before they expire; it replaces the
            option `optimist.store.s3.credentialsProvider`.
        has_arbiter: True if an arbiter decides before this store is used: then staged commits may
            be ours, and a commit may be replaced by its own bytes.
        read_retries: How often in a row a read continues if the commit is replaced meanwhile (spec
            3.5).
    """

    def __init__(
        self,
        options: Mapping[str, str] | None = None,
        *,
        clock: Clock | None = None,
        credentials: Callable[[], S3Credentials] | None = None,
        has_arbiter: bool = False,
        read_retries: int = READ_RETRIES,
    ) -> None:
        super().__init__(options)
        S3Options.from_options(self.options)  # reports at once what is wrong for every bucket
        self._clock: Clock = clock or SystemClock()
        self._credentials = credentials
        self._has_arbiter = has_arbiter
        self._read_retries = read_retries
        self._lock = ForkSafeLock()
        self._buckets: dict[str, S3Bucket] = {}
        self._without_arbiter: set[str] = set()
        self._known = KnownCommits()
        renew_in_child(self, S3LogStore._forget_connections)

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """See `LogStore.put_if_absent`.

        1. Before the first write to a log directory: look for commits staged by an arbiter's
           writers. Before the first write to a bucket: probe whether the store refuses to
           overwrite.
        2. PUT with `If-None-Match: *`. On a 409 or throttling, wait and send it again.
        3. `EXISTS` after throttling may be our own file: the answer is `UNKNOWN`, and the engine
           reads the file back.

        Raises:
            ConfigError: The store does not exclude other writers (kind
                `OPTIMIST_NO_ATOMIC_CREATE`), or another engine commits there through an arbiter
                (`OPTIMIST_FOREIGN_ARBITER`).
            StorageError: Nothing was created.
        """
        bucket, location = self._locate(path)
        self._ensure_no_arbiter(path, location)
        if not self._ensure_exclusive(path, bucket):
            return self._put_unsafely(path, data)
        outcome, etag = bucket.create(location.key, data, path=path)
        if outcome is PutOutcome.CREATED and etag and is_commit(location.name):
            created = CommitIdentity(location.url, etag, len(data), is_ours=True)
            self._known.remember(created.with_content(data))
        return outcome

    def is_as_created(self, listed: FileStatus) -> bool:
        """See `LogStore.is_as_created`.

        A listing has already reported a replaced commit.
        """
        known = self._known.get(S3Location.of(listed.path).url)
        return known is not None and known.is_ours

    def put_file_if_absent(self, path: str, file: BinaryIO) -> PutOutcome:
        """See `LogStore.put_file_if_absent`.

        A large file is sent in parts, see `s3/parts.py`.
        """
        bucket, location = self._locate(path)
        self._ensure_no_arbiter(path, location)
        if not self._ensure_exclusive(path, bucket):
            return super().put_file_if_absent(path, file)
        return bucket.create(location.key, file, path=path)[0]

    def put_data_file(self, path: str, file: BinaryIO) -> PutOutcome:
        """See `LogStore.put_data_file`.

        The store is not probed for it.

        If the store does not know the condition, the file is written without it: an object appears
        whole, and only our own requests write this name, so the last one leaves our bytes.
        """
        bucket, location = self._locate(path)
        try:
            return bucket.create(location.key, file, path=path)[0]
        except StorageError as error:
            if error.kind != STORE_UNSUPPORTED:
                raise
        return bucket.create(location.key, file, path=path, is_conditional=False)[0]

    def put_overwrite(self, path: str, data: bytes) -> None:
        """See `LogStore.put_overwrite`."""
        bucket, location = self._locate(path)
        # Else the next listing would report our own write as another writer's.
        self._known.forget(location.url)
        bucket.put(location.key, data, path=path)

    def read_bytes(self, path: str) -> bytes:
        """See `LogStore.read_bytes`."""
        bucket, location = self._locate(path)
        found = bucket.fetch(location.key, path=path)
        if is_commit(location.name):
            self._known.learn(
                CommitIdentity(location.url, found.etag, found.size_bytes), found.data
            )
        return found.data

    def open_read(self, path: str) -> BinaryIO:
        """See `LogStore.open_read`.

        It uses ranged reads with read-ahead, see `s3/reader.py`.
        """
        bucket, location = self._locate(path)
        return open_ranged(
            lambda byte_range, etag: bucket.fetch(
                location.key, path=path, byte_range=byte_range, etag=etag
            ),
            path=path,
            read_ahead_bytes=bucket.options.read_ahead_bytes,
            replacements=self._read_retries if self._may_be_replaced(location) else 0,
        )

    def list_from(self, path: str) -> Iterator[FileStatus]:
        """See `LogStore.list_from`.

        Pages are fetched as the caller reaches them.

        An empty prefix is a missing directory. Errors come with the first item.

        Raises:
            StorageError: Also if a commit that this store knows was overwritten (kind
                `OPTIMIST_COMMIT_REPLACED`).
        """
        bucket, location = self._locate(path)
        parent = path[: len(path) - len(location.name)] if location.key else path.rstrip("/") + "/"
        for item in bucket.objects_from(location, path=path):
            name = item["Key"][len(location.prefix) :]
            if not name or name < location.name:
                continue
            status = _status(item, parent + name)
            if is_commit(name):
                self._ensure_same(bucket, item, status)
            yield status

    def list_below(self, directory: str) -> Iterator[FileStatus]:
        """See `LogStore.list_below`."""
        bucket, location = self._locate(directory.rstrip("/") + "/")
        for item in bucket.everything_under(location.key, path=directory):
            if not item["Key"].endswith("/"):  # a marker that others write for a directory
                yield _status(item, join(directory, item["Key"][len(location.key) :]))

    def list_names(self, directory: str) -> Iterator[str]:
        """See `LogStore.list_names`."""
        bucket, location = self._locate(directory.rstrip("/") + "/")
        return filter(None, bucket.names_under(location.key, path=directory))

    def delete(self, path: str) -> None:
        """See `LogStore.delete`."""
        bucket, location = self._locate(path)
        self._known.forget(location.url)
        bucket.delete(location.key, path=path)

    def delete_data_files(self, paths: Sequence[str]) -> None:
        """See `LogStore.delete_data_files`.

        One request deletes up to a thousand files.
        """
        if paths:
            bucket, _ = self._locate(paths[0])
            bucket.delete_many({S3Location.of(path).key: path for path in paths})

    def service_time_ms(self, path: str) -> int | None:
        """See `LogStore.service_time_ms`."""
        bucket, location = self._locate(path)
        return bucket.service_time_ms(location, path=path)

    def is_partial_write_visible(self, path: str) -> bool:  # noqa: ARG002 - the contract's
        """Return False, since an object appears whole or not at all."""
        return False

    def resolve_path(self, path: str) -> str:
        """Return the path as `s3://bucket/key`, for any of the three schemes."""
        return S3Location.of(path).url

    def data_origin(self, path: str) -> DataOrigin:
        """See `LogStore.data_origin`."""
        return s3_origin(S3Location.of(path).bucket)

    def data_access(self, path: str) -> DataAccess:
        """See `LogStore.data_access`."""
        return self._locate(path)[0].data_access()

    def abort_uploads(self, directory: str) -> None:
        """See `LogStore.abort_uploads`.

        S3 keeps and bills uploads until then.
        """
        bucket, location = self._locate(directory)
        bucket.abort_uploads(location)

    def describe(self) -> Mapping[str, str]:
        """See `LogStore.describe`.

        It includes the probes and their times.
        """
        with self._lock:
            containers = [(each.endpoint, each.name) for each in self._buckets.values()]
        return {
            **super().describe(),
            "one writer wins by": "PutObject with If-None-Match: *",
            "excludes": "Optimist and deltalake 1.x writers of all machines; not delta-spark",
            "endpoint": ", ".join(sorted({endpoint for endpoint, _ in containers}))
            or "not used yet",
            "probed": describe_verdicts(containers),
        }

    # Refusing

    def _ensure_exclusive(self, path: str, bucket: S3Bucket) -> bool:
        """Check that the store refuses to overwrite, or return False if the user takes the risk."""
        container = (bucket.endpoint, bucket.name)
        verdict = probe_once(
            container, path, create=self._create_probe, delete=self.delete, clock=self._clock
        )
        ensure_exclusive(
            verdict,
            container,
            path,
            override=("optimist.store.s3.allowUnsafeWrites", bucket.options.allow_unsafe_writes),
            instead="an arbiter that records who owns a version "
            f"(spark.delta.logStore.{_scheme(path)}.impl=s3-dynamodb, s3-redis or s3-arbiter)",
        )
        return verdict.is_exclusive

    def _create_probe(self, path: str, data: bytes) -> PutOutcome:
        bucket, location = self._locate(path)
        return bucket.create(location.key, data, path=path)[0]

    def _ensure_no_arbiter(self, path: str, location: S3Location) -> None:
        """Refuse a table that another engine writes through an arbiter, checked once per log."""
        log = _log_directory(location)
        with self._lock:
            is_checked = self._has_arbiter or log in self._without_arbiter
        if not is_checked:
            self._ensure_nothing_staged(path, log)
            with self._lock:
                self._without_arbiter.add(log)

    def _ensure_nothing_staged(self, path: str, log: str) -> None:
        bucket, staging = self._locate(join(log, _STAGED))
        staged = bucket.first_under(staging.key, path=path)
        if staged is None:
            return
        if bucket.options.allow_foreign_arbiter:
            _LOG.warning(
                "%s has staged commits of another engine; it is written to because "
                "optimist.store.s3.allowForeignArbiter is set.",
                log,
            )
            return
        raise ConfigError(
            f"Nothing was written to {path}: {staging.url} holds commits staged by a writer that "
            "asks an arbiter first (delta-spark or Optimist with S3DynamoDBLogStore). This store "
            "does not, so both could win one version. Use the same arbiter "
            f"(spark.delta.logStore.{_scheme(path)}.impl=s3-dynamodb, with that writer's DynamoDB "
            "table and region). If all such writers are gone for good, delete the staged files or "
            "set optimist.store.s3.allowForeignArbiter=true.",
            kind="OPTIMIST_FOREIGN_ARBITER",
            path=path,
            staged=staged["Key"],
        )

    def _put_unsafely(self, path: str, data: bytes) -> PutOutcome:
        """First check, then write.

        This is used only if the user takes the risk, with a warning on every commit.
        """
        bucket, location = self._locate(path)
        found = bucket.first_under(location.key, path=path)
        if found is not None and found["Key"] == location.key:
            return PutOutcome.EXISTS
        try:
            bucket.put(location.key, data, path=path)
        except StorageError as error:
            if not error.retryable:
                raise
            return PutOutcome.UNKNOWN  # one of the SDK's attempts may have arrived
        return PutOutcome.CREATED

    # Detecting overwritten commits

    def _ensure_same(self, bucket: S3Bucket, item: ObjectTypeDef, status: FileStatus) -> None:
        url = f"s3://{bucket.name}/{item['Key']}"
        seen = CommitIdentity(url, item.get("ETag", ""), status.size_bytes, status.modified_ms)
        known = self._known.changed(seen)
        if known is None:
            return
        found = seen.with_content(bucket.fetch(item["Key"], path=status.path).data)
        is_new_table = not self._is_copy(known, found) and self._is_new_table(bucket, known, found)
        if is_new_table:
            _LOG.warning("The table of %s was deleted and created again.", url)
            self._known.forget_table(url)
        self._known.remember(found)
        if not is_new_table and not self._is_copy(known, found):
            raise commit_replaced(known, found)

    def _is_copy(self, known: CommitIdentity, found: CommitIdentity) -> bool:
        if known.txn_id is not None:
            return known.txn_id == found.txn_id
        # There is no txnId to compare. Recovery may copy the same staged bytes twice, under another
        # tag.
        return self._has_arbiter and known.size_bytes == found.size_bytes

    def _is_new_table(self, bucket: S3Bucket, known: CommitIdentity, found: CommitIdentity) -> bool:
        """Check whether version 0 is younger than the known commit, which proves a new table."""
        first = join(found.path.rpartition("/")[0], commit_name(0))
        if found.path == first:
            # There is no other evidence. A commit of ours is never given up silently, so it counts
            # as lost.
            return not known.is_ours
        item = bucket.first_under(S3Location.of(first).key, path=first)
        if item is None:
            return False
        now = _status(item, first)
        known_first = self._known.get(first)
        if known_first is not None:
            return (known_first.etag, known_first.size_bytes) != (item.get("ETag"), now.size_bytes)
        return 0 < known.modified_ms < now.modified_ms

    def _may_be_replaced(self, location: S3Location) -> bool:
        return self._has_arbiter and is_commit(location.name)

    # Buckets

    def _locate(self, path: str) -> tuple[S3Bucket, S3Location]:
        location = S3Location.of(path)
        with self._lock:
            bucket = self._buckets.get(location.bucket)
            if bucket is None:
                bucket = self._buckets[location.bucket] = self._open_bucket(location.bucket)
        return bucket, location

    def _forget_connections(self) -> None:
        keep_inherited(self._buckets)
        self._buckets = {}

    def _open_bucket(self, name: str) -> S3Bucket:
        options = S3Options.from_options(self.options, bucket=name)
        clients = make_clients(options, self._clock, self._credentials)
        return S3Bucket(name, options, clients, self._clock)


def _log_directory(location: S3Location) -> str:
    """Return the URL of a file's log, or of its directory outside of a log."""
    parts = location.prefix.rstrip("/").split("/")
    if LOG_DIRECTORY in parts:
        parts = parts[: parts.index(LOG_DIRECTORY) + 1]
    return f"s3://{location.bucket}/{'/'.join(parts)}".rstrip("/")


def _scheme(path: str) -> str:
    return path.partition(":")[0]


def _status(item: ObjectTypeDef, path: str) -> FileStatus:
    modified_ms = int(item["LastModified"].timestamp() * 1000)
    return FileStatus(path, item["Size"], modified_ms, item.get("ETag", ""))
