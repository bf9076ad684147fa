"""The emulator's unsigned control interface, under `/_emulator/`.

GET    health
POST   functions                         a FunctionSeed
GET    functions/NAME                    configuration and active instances
PATCH  functions/NAME                    fields of FunctionSeed: how it behaves
POST   functions/NAME/environment        a deployer's change: {"KEY": "value"}
POST   functions/NAME/instances          start one; answers {"id"}
DELETE functions/NAME/instances/ID       end one
POST   credentials                       a CredentialSeed
POST   faults                            a Fault; answers {"id"}
GET    faults/ID?hits=N&timeout=S        waits until it has hit N requests; answers {"hits", "reached"}
DELETE faults/ID                         remove it, let go what it holds
POST   light                             end the dark
POST   skew                              {"seconds"}: put the service's clock off
GET    arrivals?function=&operation=&count=N&timeout=S   waits until N have arrived; answers the list
GET    dispatches?function=&marker=      the mutating requests that arrived
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from praxis.demo.function_compute.emulator import Answer, Emulator, as_json
from praxis.demo.function_compute.faults import Fault
from praxis.demo.function_compute.functions import CredentialSeed, FunctionSeed

PREFIX: Final = "/_emulator/"
LONGEST_WAIT_SECONDS: Final = 120.0


def control(emulator: Emulator, method: str, path: str, query: Mapping[str, str], body: bytes) -> Answer:
    """Carry out a request of the control interface: 200, 404 for what is not there, 422 for what makes no sense."""
    steps = path.removeprefix(PREFIX).split("/")
    try:
        given = json.loads(body or b"{}")
        found = _read(emulator, steps, query) if method == "GET" else _write(emulator, method, steps, given)
    except KeyError as error:
        return _json(404, {"error": f"there is no {error}"})
    except (ValidationError, ValueError, TypeError) as error:
        return _json(422, {"error": str(error)})
    return _json(200, {} if found is None else found)


def _read(emulator: Emulator, steps: Sequence[str], query: Mapping[str, str]) -> Any:
    timeout = min(float(query.get("timeout", "30")), LONGEST_WAIT_SECONDS)
    function, operation = query.get("function"), query.get("operation")
    match steps:
        case ["health"]:
            return {"ready": True}
        case ["functions", name]:
            return emulator.describe(name)
        case ["faults", fault_id]:
            reached = emulator.wait_for_hits(fault_id, int(query.get("hits", "0")), timeout)
            return {"hits": emulator.hits(fault_id), "reached": reached}
        case ["arrivals"]:
            count = int(query.get("count", "0"))
            emulator.wait_for_arrivals(count, function=function, operation=operation, timeout=timeout)
            return as_json(emulator.arrivals(function, operation))
        case ["dispatches"]:
            return as_json(emulator.dispatches(function, query.get("marker")))
    raise KeyError("/".join(steps))


def _write(emulator: Emulator, method: str, steps: Sequence[str], given: dict[str, Any]) -> Any:
    match [method, *steps]:
        case ["POST", "functions"]:
            emulator.add_function(FunctionSeed.model_validate(given))
        case ["PATCH", "functions", name]:
            changed = FunctionSeed.model_validate({"name": name, **given})
            emulator.change(name, **changed.model_dump(exclude_unset=True))
        case ["POST", "functions", name, "environment"]:
            emulator.deploy(name, given)
        case ["POST", "functions", name, "instances"]:
            return {"id": emulator.start_instance(name)}
        case ["DELETE", "functions", name, "instances", instance]:
            emulator.stop_instance(name, instance)
        case ["POST", "credentials"]:
            emulator.add_credential(CredentialSeed.model_validate(given))
        case ["POST", "faults"]:
            return {"id": emulator.arm(Fault.model_validate(given))}
        case ["DELETE", "faults", fault_id]:
            emulator.disarm(fault_id)
        case ["POST", "light"]:
            emulator.light()
        case ["POST", "skew"]:
            emulator.skew(float(given["seconds"]))
        case _:
            raise KeyError(f"{method} {'/'.join(steps)}")
    return None


def _json(status: int, document: Any) -> Answer:
    return Answer(status, {"Content-Type": "application/json"}, json.dumps(document).encode())
