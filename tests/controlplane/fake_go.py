"""Stands in for `go`: `version`, `list`, `build`. The scenario beside it may hold

version     what `go version` says
hang        name of the binary whose build stops half-way, until the gate is opened
compiler    true: a hanging build has a child, as Go has compilers; its pid is in the file `compiler`
fail        name of the binary whose build fails
"""

import json
import os
import subprocess
import sys
from pathlib import Path

here = Path(sys.argv[0]).parent
stored = here / "scenario.json"
scenario = json.loads(stored.read_text()) if stored.exists() else {}


def note_call() -> None:
    shown = ("GOTOOLCHAIN", "CGO_ENABLED", "GOFLAGS", "GOWORK")
    call = {"args": sys.argv[1:], "env": {name: os.environ.get(name) for name in shown}, "cwd": str(Path.cwd())}
    with (here / "calls").open("a") as calls:
        calls.write(json.dumps(call) + "\n")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def build(output: Path) -> None:
    binary = output.name
    say("example.org/first")
    if scenario.get("fail") == binary:
        say("example.org/second: undefined: everything")
        sys.exit(1)
    output.write_text("#!/bin/sh\n# hal")
    (Path(os.environ["GOTMPDIR"]) / "go-build123").mkdir(exist_ok=True)
    if scenario.get("hang") == binary:
        if scenario.get("compiler"):
            child = subprocess.Popen([sys.executable, "-SEc", "import signal; signal.pause()"])
            (here / "compiler").write_text(str(child.pid))
        (here / "arrived").write_text("here")
        (here / "gate").read_text()
    say("example.org/second")
    say("example.org/third")
    output.write_text(f"#!/bin/sh\necho {binary}\n")
    output.chmod(0o755)


note_call()
if sys.argv[1] == "version":
    print("go version", scenario.get("version", "go1.99.0"), "linux/amd64")
elif sys.argv[1] == "list":
    say("go: downloading example.org/first v1.0.0")
    print("example.org/first\nexample.org/second\nexample.org/third")
else:
    build(Path(sys.argv[sys.argv.index("-o") + 1]))
