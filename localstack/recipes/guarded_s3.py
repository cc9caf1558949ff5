"""LocalStack with the gap in its create-if-absent closed.

Its S3 store keeps the lock of a key in an entry that `EphemeralS3ObjectStore.open` looks up and, if
there is none, makes. Two first writers of one key can both find none, make one each, hold different
locks, and both be told that they created the object. Here look-up and making are one step, under a
lock that is let go before the key's own lock is taken: a slow reader of one key holds up no other.
"""

from __future__ import annotations

import runpy
import threading
from pathlib import Path
from typing import Any, Literal

from localstack.services.s3.storage import ephemeral

_look_up = threading.Lock()


def _open(
    store: ephemeral.EphemeralS3ObjectStore,
    bucket: str,
    s3_object: Any,
    mode: Literal["r", "w"] = "r",
) -> ephemeral.EphemeralS3StoredObject:
    key = store._key_from_s3_object(s3_object)
    with _look_up:
        file = store._get_object_file(bucket, key)
        if file is None:
            file = ephemeral.LockedSpooledTemporaryFile(
                dir=str(Path(store.root_directory, bucket)),
                max_size=ephemeral.S3_MAX_FILE_SIZE_BYTES,
            )
            store._filesystem[bucket]["keys"][key] = file
    return ephemeral.EphemeralS3StoredObject(s3_object=s3_object, file=file, mode=mode)


ephemeral.EphemeralS3ObjectStore.open = _open
if __name__ == "__main__":
    runpy.run_module("localstack.runtime.main", run_name="__main__")
