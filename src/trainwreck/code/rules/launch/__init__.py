"""Static rules of the family launch: how programs are started, and with which flags and variables."""
