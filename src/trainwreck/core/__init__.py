"""The types that every part of trainwreck speaks, and their JSON. Imports nothing of ours."""
