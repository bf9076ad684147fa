"""Which store the settings ask for."""

from __future__ import annotations

from praxis.clock import Clock
from praxis.recorder.contract import Recorder
from praxis.recorder.sqlite import SqliteRecorder
from praxis.settings import RecorderSettings


def open_recorder(settings: RecorderSettings, clock: Clock) -> Recorder:
    """The recorder that the settings name. Opens nothing yet: a store that is out of order stalls incidents, not us."""
    return SqliteRecorder(path=settings.path, clock=clock, max_bytes=settings.max_bytes, days=settings.days)
