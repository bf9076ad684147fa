"""PRAXIS: alerts become plans, a person approves the exact plan, and it is carried out once, verifiably."""
