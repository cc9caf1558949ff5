"""kill -9 at each step of each store's write; another process goes on, and nothing is lost.

One test per store. It first records the steps of a commit, warm but for what the first write to a
place asks (whether the server refuses to overwrite, say), and then kills a commit to a fresh table
at each of them, on both sides. After each, another process must be able to commit, and the log,
read past the stores, must hold the killed commit once if its point of no return was passed, and
else not at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import hdfs_native
import pytest
from azure.storage.blob import ContainerClient
from google.auth.credentials import AnonymousCredentials
from google.cloud.storage import Client

from crashing import KILLED, SURVIVOR, Kill, append_elsewhere, kill_at, record_steps
from fleet import create_table, files_in
from optimist.core import DeltaLog

_COMMIT = re.compile(r"_delta_log/(\d{20})\.json$")
_TRIES = 3
_AT_ONCE = 4
STAGED = r"PUT .*/\.tmp/"


@dataclass(frozen=True, slots=True)
class Place:
    """A store at its server.

    Attributes:
        root: Below it tables are made.
        options: For `DeltaLog.for_path`.
        point: Matches the step after which the commit can't be taken back any more.
        files: Everything below a table's path by name, read past the store.
        staging: Matches a step before that one, where `point` matches earlier ones too.
    """

    root: str
    options: Mapping[str, str]
    point: str
    files: Callable[[str], Mapping[str, bytes]]
    staging: str = ""


@pytest.fixture
def s3_bucket(s3_server, fresh_name):
    client = s3_server.client("s3")
    client.create_bucket(Bucket=fresh_name)

    def files(table):
        found = client.list_objects_v2(Bucket=fresh_name, Prefix=f"{table}/").get("Contents", [])
        return {
            each["Key"]: client.get_object(Bucket=fresh_name, Key=each["Key"])["Body"].read()
            for each in found
        }

    options = s3_server.s3a_options
    return fresh_name, options, files


def on_s3(bucket, point, staging="", **more):
    name, options, files = bucket
    return Place(f"s3a://{name}", {**options, **more}, point, files, staging)


@pytest.fixture
def local(tmp_path):
    def files(table):
        root = tmp_path / table
        found = (each for each in root.rglob("*") if each.is_file())
        return {str(each.relative_to(tmp_path)): each.read_bytes() for each in found}

    return Place(str(tmp_path), {}, r"os\.link", files)


@pytest.fixture
def s3(s3_bucket):
    return on_s3(s3_bucket, r"PUT .*/0{19}1\.json$")


@pytest.fixture
def s3_dynamodb(s3_bucket, dynamodb_server, fresh_name):
    delta = "io.delta.storage.S3DynamoDBLogStore"
    return on_s3(
        s3_bucket,
        "dynamodb PutItem",
        STAGED,
        **{
            "delta.logStore.class": "s3-dynamodb",
            f"{delta}.ddb.tableName": fresh_name,
            f"{delta}.ddb.region": dynamodb_server.region,
            "optimist.store.dynamodb.endpoint": dynamodb_server.endpoint,
            "optimist.store.dynamodb.accessKeyId": dynamodb_server.access_key_id,
            "optimist.store.dynamodb.secretAccessKey": dynamodb_server.secret_access_key,
        },
    )


@pytest.fixture
def s3_redis(s3_bucket, redis_server, fresh_name):
    return on_s3(
        s3_bucket,
        "redis EVAL",
        STAGED,
        **{
            "delta.logStore.class": "s3-redis",
            "optimist.store.redis.url": redis_server.endpoint,
            "optimist.store.redis.prefix": fresh_name,
        },
    )


@pytest.fixture
def s3_sql(s3_bucket, tmp_path):
    return on_s3(
        s3_bucket,
        "sql COMMIT",
        STAGED,
        **{
            "delta.logStore.class": "s3-arbiter",
            "optimist.store.arbiter": "sql",
            "optimist.store.sql.url": f"sqlite:///{tmp_path}/log.db",
        },
    )


@pytest.fixture
def azure(azure_server, fresh_name):
    client = ContainerClient.from_connection_string(azure_server.connection_string, fresh_name)
    client.create_container()

    def files(table):
        names = [each.name for each in client.list_blobs(name_starts_with=f"{table}/")]
        return {name: client.download_blob(name).readall() for name in names}

    options = {"optimist.store.azure.connectionString": azure_server.connection_string}
    yield Place(f"az://{fresh_name}", options, r"PUT .*/0{19}1\.json", files)
    client.delete_container()
    client.close()


@pytest.fixture
def gcs(gcs_server, fresh_name):
    client = Client(
        project=gcs_server.project,
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": gcs_server.endpoint},
    )
    bucket = client.create_bucket(fresh_name)

    def files(table):
        found = bucket.list_blobs(prefix=f"{table}/")
        return {blob.name: blob.download_as_bytes() for blob in found}

    options = {"optimist.store.gcs.emulatorHost": gcs_server.endpoint}
    yield Place(f"gs://{fresh_name}", options, r"POST .*/0{19}1\.json$", files)
    client.close()


@pytest.fixture
def hdfs(hdfs_server, fresh_name):
    client = hdfs_native.Client(hdfs_server.endpoint)
    client.mkdirs(f"/{fresh_name}", 0o755, True)

    def files(table):
        found = client.list_status(f"/{fresh_name}/{table}", recursive=True)
        paths = [each.path for each in found if not each.isdir]
        return {path: client.read(path).read() for path in paths}

    options = {"delta.logStore.class": "optimist.logstores:HDFSNativeLogStore"}
    yield Place(f"{hdfs_server.endpoint}/{fresh_name}", options, "hdfs rename", files)
    client.delete(f"/{fresh_name}", True)


@pytest.fixture(params=["local", "s3", "s3_dynamodb", "s3_redis", "s3_sql", "azure", "gcs", "hdfs"])
def place(request):
    return request.getfixturevalue(request.param)


def new_table(place, name):
    path = f"{place.root}/{name}"
    log = DeltaLog.for_path(path, place.options)
    log.table.ensure_log_directory()
    create_table(log)
    return path


def commits_in(place, table):
    """The files that each commit adds, by version; every commit must be whole."""
    found = {}
    for name, data in place.files(table).items():
        match = _COMMIT.search(name)
        if match:
            actions = [json.loads(line) for line in data.decode().splitlines()]
            found[int(match[1])] = [each["add"]["path"] for each in actions if "add" in each]
    return [found[version] for version in range(len(found))]


def point_of_no_return(place, steps):
    staged = next(n for n, step in enumerate(steps) if re.search(place.staging, step))
    return next(n for n in range(staged, len(steps)) if re.search(place.point, steps[n]))


def has_passed(kill, point):
    return kill.step > point or (kill.step == point and kill.is_after)


def check_kill(place, kill, point, name="table"):
    """Kill a commit to a fresh table, and look what became of it."""
    table = f"{name}-{kill.step}-{'after' if kill.is_after else 'before'}"
    path = new_table(place, table)
    kill_at(path, place.options, kill)
    append_elsewhere(path, place.options)
    added = [KILLED] if has_passed(kill, point) else []
    commits = commits_in(place, table)
    assert commits == [[], *([name] for name in (*added, SURVIVOR))], f"{kill}: {commits}"
    fresh = DeltaLog.for_path(path, place.options)
    assert files_in(fresh) == sorted((*added, SURVIVOR)), str(kill)


def check_alone(place, kill):
    """Check a kill that went wrong among others, each time by steps that are counted anew.

    A client that a busy server makes ask once more takes another step, while steps are counted or
    while they are gone through. So it has to go wrong each time.
    """
    for attempt in range(_TRIES):
        steps = record_steps(new_table(place, f"recorded-{kill.step}-{attempt}"), place.options)
        try:
            check_kill(place, kill, point_of_no_return(place, steps), f"alone-{attempt}")
        except AssertionError:
            if attempt == _TRIES - 1:
                raise
        else:
            return


def test_kill_at_each_step_loses_nothing_and_blocks_nobody(place):
    steps = record_steps(new_table(place, "recorded"), place.options)
    point = point_of_no_return(place, steps)
    kills = [Kill(step, is_after) for step in range(len(steps)) for is_after in (False, True)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        pending = [pool.submit(check_kill, place, kill, point) for kill in kills]
        problems = [each.exception() for each in pending]
    for kill, problem in zip(kills, problems, strict=True):
        if problem is not None:
            check_alone(place, kill)
