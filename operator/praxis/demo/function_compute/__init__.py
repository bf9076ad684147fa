"""An emulator of Function Compute 3.0 that speaks its REST protocol to the real SDK and verifies its signatures.

It knows four operations (GetFunction, UpdateFunction, ListInstances, InvokeFunction), functions whose instances live,
drain and start, and faults on demand: over an unsigned HTTP interface beside the signed one, or in Python. It records
every mutating request that arrived and whether it was applied. Nothing outlives the process.

Run it on its own with `python -m praxis.demo.function_compute --port 0 --port-file FILE --functions FILE`.
What it emulates was read in the SDK and in the vendor's documentation, and never compared with the live service.
"""

from praxis.demo.function_compute.admin import Admin
from praxis.demo.function_compute.emulator import Arrival, Emulator
from praxis.demo.function_compute.faults import Fault
from praxis.demo.function_compute.functions import CredentialSeed, FunctionSeed, Seed
from praxis.demo.function_compute.server import EmulatorServer

__all__ = ["Admin", "Arrival", "CredentialSeed", "Emulator", "EmulatorServer", "Fault", "FunctionSeed", "Seed"]
