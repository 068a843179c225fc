"""Loops over time with hand-written gradients.

- `engine` runs a `Step` over a sequence, forward and backward, on every backend.
- `gated_step` is the step of a recurrence with gates, a hidden state and a cell state.
- `lstm` has the equations of the LSTM, and its step.
"""
