"""Work for the executors that the driver can do as well, if they lack this package."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from optimist.core.errors import ConfigError
from optimist.core.errors.kinds import MISSING_PACKAGE
from optimist.spark.session.callback_errors import original_errors

__all__ = ["on_executors"]

_LOG = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")


def on_executors(run: Callable[[], _Answer], run_here: Callable[[], _Answer]) -> _Answer:
    """Return a job's result, or do the work in the driver if workers lack this package.

    Args:
        run: Runs the job.
        run_here: Does the same work in the driver.
    """
    try:
        with original_errors():
            return run()
    except ConfigError as error:
        if error.kind != MISSING_PACKAGE:
            raise
        _LOG.warning("The driver does what the executors can't: %s", error)
    return run_here()
