"""Settings: located key paths with values from configurations, launch scripts and Python, linked to the program."""
