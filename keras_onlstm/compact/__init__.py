"""Language models with 8-bit weights: their file format, and computing distances with NumPy."""
