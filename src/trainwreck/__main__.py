"""``python -m trainwreck``."""

from trainwreck.cli import main

main()
