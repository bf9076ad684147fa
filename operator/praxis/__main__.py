"""`python -m praxis` is the `praxis` command."""

from praxis.cli import main

main(prog_name="praxis")
