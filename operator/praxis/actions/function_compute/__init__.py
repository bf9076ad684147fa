"""The one adapter that changes anything: Function Compute 3.0. Importing it loads the Alibaba Cloud SDK."""

from praxis.actions.function_compute.adapter import FunctionComputeAdapter
from praxis.actions.function_compute.credentials import read_digest_key

__all__ = ["FunctionComputeAdapter", "read_digest_key"]
