"""The loop over time. `reference` is the readable one; whatever is faster must equal it."""
