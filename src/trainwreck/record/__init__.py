"""The flight recorder: ``inside`` is loaded into the user's process, ``launch`` is the parent that starts it."""
