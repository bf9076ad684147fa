"""The scripted model: a real HTTP server that speaks the OpenAI-compatible protocol and reasons by rules.

It stands in for Qwen where there is no account: in the demo and in the tests. It is no language model, is never called
Qwen, marks every text it writes as scripted, and listens on loopback only.
"""

from __future__ import annotations

from praxis.demo.scripted.faults import Fault, FaultKind, FaultQueue
from praxis.demo.scripted.rules import SIGN
from praxis.demo.scripted.server import EMBEDDING, FAST, REASONING, Recorded, ScriptedModel

__all__ = ["EMBEDDING", "FAST", "REASONING", "SIGN", "Fault", "FaultKind", "FaultQueue", "Recorded", "ScriptedModel"]
