"""The recorder as a callback: ``transformers`` (Trainer, TRL), ``accelerate`` (a tracker), ``lightning``.

Each module imports its framework, and is imported only by those who use it.
"""
