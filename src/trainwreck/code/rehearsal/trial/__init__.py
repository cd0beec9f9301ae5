"""Values of a rehearsal worked out with small arrays in place of what isn't known (``bench``)."""
