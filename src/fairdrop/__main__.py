"""``python -m fairdrop`` is the command line."""

from fairdrop.cli import main

main()
