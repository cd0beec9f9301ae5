"""The recorder's JAX side: watch a train step from outside, and run a failing one again primitive by primitive."""
