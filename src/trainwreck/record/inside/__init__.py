"""Loaded into the user's process. Imports only the standard library, and torch once the user has imported it.

Nothing here may change or stop a training: every entry point contains its own faults.
"""
