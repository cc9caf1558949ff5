"""What docs/locks.md shows is what is run here, to the letter."""

import os
import subprocess
import sys

import pytest

from optimist.core.plugins.lock_registry import find_arbiter, find_lease
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing.arbiter_suite import entry_of


@pytest.fixture
def own_modules(modules_of_page):
    return modules_of_page("locks.md")


def test_own_arbiter_is_found_through_the_conf_key(own_modules, tmp_path):
    arbiter = find_arbiter(
        {
            "spark.optimist.store.arbiter": "directory_arbiter:DirectoryArbiter",
            "optimist.store.directory-arbiter.root": str(tmp_path / "entries"),
        }
    )
    assert arbiter.create(entry_of("s3a://b/t", 0)) is PutOutcome.CREATED
    assert arbiter.create(entry_of("s3a://b/t", 0, worker=1)) is PutOutcome.EXISTS
    assert len(list((tmp_path / "entries").rglob("entry-*"))) == 1


def test_own_lease_is_found_through_the_conf_key(own_modules, tmp_path):
    lease = find_lease(
        {
            "spark.optimist.store.lease": "sqlite_lease:SqliteLease",
            "optimist.store.sqlite-lease.database": str(tmp_path / "leases.db"),
        }
    )
    grant = lease.try_acquire("t", ttl_s=60)
    assert lease.try_acquire("t", ttl_s=60) is None
    lease.release(grant)
    assert lease.try_acquire("t", ttl_s=60).fencing_number == grant.fencing_number + 1


@pytest.mark.again
@pytest.mark.parametrize("suite", ["test_directory_arbiter.py", "test_sqlite_lease.py"])
def test_own_class_passes_its_suite_as_documented(own_modules, suite):
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", suite],
        cwd=own_modules,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "skipped" not in finished.stdout
