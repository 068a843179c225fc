"""Benchmark configurations: sizes, implementations, and numbers of floating-point operations."""

import itertools
from typing import NamedTuple

# Kinds of models.
LANGUAGE_MODEL, CLASSIFIER, PRPN, TREES = "language model", "classifier", "PRPN", "trees"
LOOKBACK = 5  # the default of PRPN


class Configuration(NamedTuple):
    batch: int
    time: int
    input_dim: int
    units: tuple  # one entry per layer
    chunk_size: int | None
    measures: tuple = ("forward", "train")
    rounds: int | None = None  # maximum number
    vocabulary: int | None = None  # of a complete model
    model: str | None = None  # kind of a complete model; `None`: layers only

    @property
    def layers(self):
        """Input size, units and number of pre-activations of every layer."""
        sizes = (self.input_dim, *self.units)
        return [
            (d, u, 4 * u + 2 * (u // self.chunk_size))
            for d, u in zip(sizes, self.units, strict=False)
        ]

    @property
    def tokens(self):
        return self.batch * self.time

    @property
    def directions(self):
        return 2 if self.model == CLASSIFIER else 1

    def flops(self, measure):
        """Operations of the matrix products. The backward pass has two products for each."""
        if self.model == PRPN:
            products = self._prpn_products()
        elif self.model == TREES:
            products = self._tree_products()
        else:
            products = self.directions * sum(k * (d + u) for d, u, k in self.layers)
            if self.model == LANGUAGE_MODEL:
                products += self.vocabulary * self.units[-1]
        return 2 * self.tokens * products * (3 if measure == "train" else 1)

    def _prpn_products(self):
        """Multiplications per word of the convolution, both networks and the softmax."""
        e, u = self.input_dim, self.units[0]
        reading = sum((d + u) * 5 * u for d in (e, *self.units[:-1]))  # gates and key
        return (LOOKBACK + 1) * e * u + reading + u * u + 2 * u * e + self.vocabulary * e

    def _tree_products(self):
        """Multiplications per word of an LSTM and the softmax, without left dependents."""
        (units,) = self.units
        return (self.input_dim + units) * 4 * units + self.vocabulary * units

    def bytes_moved(self, measure, width):
        """Bytes if recurrent kernels are read in every step, and the sequences of a layer once."""
        passes = 2 if measure == "train" else 1
        kernels = sum(self.time * u * k for _, u, k in self.layers)
        sequences = sum(self.tokens * (d + k + u) for d, u, k in self.layers)
        return passes * width * (kernels + sequences) * self.directions


CONFIGURATIONS = {
    "language-model": Configuration(20, 70, 400, (1150,), 10),
    "language-model-stack": Configuration(20, 70, 400, (1150, 1150, 400), 10, rounds=3),
    "logical-inference": Configuration(256, 40, 128, (400,), 10),
    "long": Configuration(20, 1000, 400, (1150,), 10, rounds=2),
    "single": Configuration(1, 70, 400, (1150,), 10, measures=("forward",)),
    "training-medium": Configuration(
        32, 35, 300, (500, 500, 300), 10, ("train",), 5, 10000, LANGUAGE_MODEL
    ),
    "training-paper": Configuration(
        20, 70, 400, (1150, 1150, 400), 10, ("train",), 3, 10000, LANGUAGE_MODEL
    ),
    "prpn-paper": Configuration(64, 35, 800, (1200, 1200), 1, ("train",), 5, 10000, PRPN),
    "trees": Configuration(
        64, 24, 100, (200,), None, ("train", "planning"), vocabulary=4600, model=TREES
    ),
}
CONFIGURATIONS.update(
    (
        f"classifier-{units}",
        Configuration(32, 80, 64, (units,), 8, ("train",), vocabulary=5000, model=CLASSIFIER),
    )
    for units in (32, 64, 128)
)
QUICK = {
    "language-model": Configuration(3, 4, 5, (6,), 2, rounds=2),
    "language-model-stack": Configuration(3, 4, 5, (6, 6, 4), 2, rounds=2),
    "logical-inference": Configuration(4, 3, 5, (6,), 2, rounds=2),
    "long": Configuration(3, 9, 5, (6,), 2, rounds=2),
    "single": Configuration(1, 4, 5, (6,), 2, measures=("forward",), rounds=2),
    "training-medium": Configuration(3, 4, 4, (6, 6, 4), 2, ("train",), 2, 7, LANGUAGE_MODEL),
    "training-paper": Configuration(3, 4, 4, (6, 6, 4), 2, ("train",), 2, 7, LANGUAGE_MODEL),
    "prpn-paper": Configuration(3, 4, 4, (6, 6), 1, ("train",), 2, 7, PRPN),
    "trees": Configuration(16, 24, 4, (6,), None, ("train", "planning"), 2, 7, TREES),
}
QUICK.update(
    (name, Configuration(3, 4, 4, (4,), 2, ("train",), 2, 7, CLASSIFIER))
    for name in CONFIGURATIONS
    if name.startswith("classifier-")
)
# Configurations whose memory is measured.
MEMORY = ("language-model", "training-medium", "training-paper", "prpn-paper")
ONLSTM = "ONLSTM"
REFERENCE = "ONLSTM(fused=False)"
CELL = "RNN(ONLSTMCell)"
MATMULS = "matrix products only"  # a lower bound
KERAS_LSTM = "keras.layers.LSTM"
TORCH_LSTM = "torch.nn.LSTM"
MODEL = "LanguageModel"
MODEL_OF_LSTM = "LanguageModel(recurrent='lstm')"
REFERENCE_LOOP, WORD_BY_WORD = "fused=False", "word by word"  # of PRPN
LEFT_DEPENDENTS = "TreeLSTM(left_dependents=True)"
SEQUENTIAL = "TreeLSTM(sequential=True)"  # on chains of the same words
TREE_LSTMS = ("TreeLSTM", LEFT_DEPENDENTS, SEQUENTIAL)
IMPLEMENTATIONS = {
    "tensorflow": (ONLSTM, "ONLSTM, jit_compile", REFERENCE, CELL, KERAS_LSTM, MATMULS),
    "jax": (ONLSTM, REFERENCE, CELL, KERAS_LSTM, MATMULS),
    "torch": (ONLSTM, REFERENCE, CELL, TORCH_LSTM, MATMULS),
}
LANGUAGE_MODELS = {
    "tensorflow": (MODEL, MODEL_OF_LSTM),
    "jax": (MODEL, MODEL_OF_LSTM),
    "torch": (MODEL, MODEL_OF_LSTM, TORCH_LSTM),
}
PRPNS = {  # options. JAX takes minutes to compile WORD_BY_WORD.
    "tensorflow": ((), (KERAS_LSTM,), (REFERENCE_LOOP,), (WORD_BY_WORD,)),
    "jax": ((), (KERAS_LSTM,), (REFERENCE_LOOP,)),
    "torch": ((), (KERAS_LSTM,), (REFERENCE_LOOP,), (WORD_BY_WORD,)),
}
CLASSIFIERS = {  # options
    "tensorflow": ((), ("no masks",), ("jit_compile",), ("run_eagerly",)),
    "jax": ((), ("no masks",)),
    "torch": ((), ("no masks",)),
}
SLOW = {REFERENCE, CELL, KERAS_LSTM}  # skipped in large configurations


def implementations(backend, configuration):
    """Names of the implementations to time."""
    if configuration.model == CLASSIFIER:
        kinds = itertools.product(CLASSIFIERS[backend], (KERAS_LSTM, ONLSTM))
        return [", ".join((kind, *options)) for options, kind in kinds]
    if configuration.model == PRPN:
        return [", ".join((PRPN, *options)) for options in PRPNS[backend]]
    if configuration.model == TREES:
        return list(TREE_LSTMS)
    if configuration.model == LANGUAGE_MODEL:
        return list(LANGUAGE_MODELS[backend])
    large = configuration.time > 500 or len(configuration.units) > 1
    return [i for i in IMPLEMENTATIONS[backend] if not (large and i in SLOW)]


def variant(implementation):
    """Splits a name into layer and options, e.g. ("ONLSTM", ["jit_compile"])."""
    kind, *options = implementation.split(", ")
    return kind, options


def get(name, quick):
    return (QUICK if quick else CONFIGURATIONS)[name]
