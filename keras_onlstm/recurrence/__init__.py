"""Loops over time with hand-written gradients: the engine, steps with gates, and the LSTM."""
