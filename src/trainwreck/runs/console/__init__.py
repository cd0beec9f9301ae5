"""Plain console text to runs: line grammars, a clock of steps, settings, events, and how the run ended.

``events`` lists every kind of event; ``text`` cuts a line into words and numbers; ``learn`` decides once per shape of
line what its numbers are; ``clock`` turns epochs and steps into one axis and cuts attempts; ``store`` keeps points in
bounded memory; ``read`` puts them together.
"""
