"""Language models with weights of 8 bits: what their files hold, and parsing with NumPy alone."""
