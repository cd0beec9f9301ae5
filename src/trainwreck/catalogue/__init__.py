"""The catalogue of failure modes, signs and error signatures: knowledge as data, loaded, searched and explained."""
