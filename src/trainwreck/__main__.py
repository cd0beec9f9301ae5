"""``python -m trainwreck``."""

from trainwreck.cli import program

program()
