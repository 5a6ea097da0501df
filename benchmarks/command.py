"""The command line of a benchmark whose options are numbers."""

from __future__ import annotations

import argparse
import asyncio
import logging
from typing import TYPE_CHECKING, Any

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


def run(measure: Callable[..., Coroutine[Any, Any, None]], description: str | None, **defaults: int) -> None:
    """Run `measure` with the numbers that the command line gives, and without logs of its parts below errors.

    Args:
        measure: the benchmark; it prints its results.
        description: what it measures, for `--help`.
        defaults: option and parameter of `measure` → value if it is not given.
    """
    parser = argparse.ArgumentParser(description=description)
    for name, value in defaults.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=value)
    chosen = vars(parser.parse_args())
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    asyncio.run(measure(**chosen))
