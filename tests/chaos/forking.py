"""Processes that do not outlive who forked them, however that ended."""

from __future__ import annotations

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1
"""prctl(2), Linux."""
_LIBC = ctypes.CDLL(None, use_errno=True)


def fork() -> int:
    """As `os.fork`; call it where there is neither thread nor event loop."""
    parent = os.getpid()
    pid = os.fork()
    if not pid:
        _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before it could be told to take us along
            os._exit(1)
    return pid
