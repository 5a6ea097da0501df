"""The seed's log: JSON lines on standard error, because Pulumi reads the provider's standard output."""

from __future__ import annotations

import logging
import sys

import structlog


def configure() -> None:
    """Write log records to standard error: structlog's from INFO, those of libraries from WARNING."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, force=True)
