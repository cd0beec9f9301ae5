"""Static rules, one module each, found by walking this folder: ``<family>/<id with underscores>.py``."""
