"""Logs of the long-running commands: one JSON object a line on stderr, redacted."""

from __future__ import annotations

import logging
import sys

from pythonjsonlogger.json import JsonFormatter

from praxis.redaction import redact


class RedactingFormatter(JsonFormatter):
    """Formats as JSON and takes out secrets, those in exceptions too."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        return redact(super().format(record))


def configure(level: str) -> None:
    """Send every log of this process through the redactor to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        RedactingFormatter(
            "%(asctime)s %(levelname)s %(name)s %(message)s",
            rename_fields={"asctime": "time", "levelname": "level", "name": "logger"},
        )
    )
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # kopf tells every event at INFO; what matters of it is in our own lines.
    logging.getLogger("kopf").setLevel(max(logging.WARNING, logging.getLevelName(level)))
