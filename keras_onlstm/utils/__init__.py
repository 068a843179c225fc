"""Helpers shared by all parts: arguments, files, numerics, the console."""
