"""Evidence times catalogue gives a diagnosis: weighed, ranked, chained, calibrated. Opens no file, names no mode."""
