"""Emulators that the demo and the tests share, and the demo. Each speaks the wire protocol of the real thing."""
