"""Work for the executors that the driver can do as well, if they have no Python for it."""

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
    """What a job answers; what the driver does, where the workers can't import this package.

    Args:
        run: Runs the job.
        run_here: Does the same in the driver.
    """
    try:
        with original_errors():
            return run()
    except ConfigError as error:
        if error.kind != MISSING_PACKAGE:
            raise
        _LOG.warning("The driver does what the executors can't: %s", error)
    return run_here()
