"""The contract of leases, under the name that their authors import: `plugins/lease.py`."""

from optimist.core.plugins.lease import Lease, LeaseGrant, lapsed

__all__ = ["Lease", "LeaseGrant", "lapsed"]
