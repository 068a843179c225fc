"""ON-LSTM, "Ordered Neurons" (Shen et al. 2019): from cumax to the layer."""
