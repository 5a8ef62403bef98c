"""Structured logs: one JSON object a line in a service, readable lines in a terminal (S5)."""

from __future__ import annotations

import logging
import sys

import structlog


def configure_logs(level: str) -> None:
    """Set up structlog for this process; ``level`` as in the settings."""
    interactive = sys.stderr.isatty()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.StackInfoRenderer(),
            *([] if interactive else [structlog.processors.format_exc_info]),
            structlog.dev.ConsoleRenderer() if interactive else structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
