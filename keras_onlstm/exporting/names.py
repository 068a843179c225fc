"""What a command line chooses from: the graphs, and the quantizations of their files. No Keras."""

__all__ = ["GRAPHS", "OF_ONNX", "QUANTIZATIONS"]

GRAPHS = ("parser", "language_model", "step", "tree_language_model", "classifier", "layer")
QUANTIZATIONS = ("dynamic", "float16")
OF_ONNX = (*QUANTIZATIONS, "weights")
