"""Loaded into the user's process. Imports only the standard library, and torch once the user has imported it.

Loaded by path as the package ``_trainwreck_inside``, so that nothing of ours stands on the user's ``sys.path``; modules
import one another relatively. Nothing here may change or stop a training: every entry point contains its own faults.
docs/recorder.md says how the parts meet.
"""
