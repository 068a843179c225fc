"""What is compiled for devices that are not there: XLA for CUDA and TPU, TensorFlow's GPU kernels.

All of it is lowered, forward and backward; nothing is run. So it says that a program can be made
for such a device, not that it is fast there.
"""

import re

import keras
import numpy as np
import pytest
from keras import ops

from keras_onlstm import ONLSTM, ONLSTMCell
from keras_onlstm.dependencies import random_tree
from keras_onlstm.models import PRPN, LanguageModel, PairClassifier, TreeLSTM

WORDS = ["<unk>", "<root>", "<eos>", *"abcdef"]
POLICIES = ("float32", "mixed_bfloat16")


def of_layer(fused, masked):
    def make(dtype):
        options = {"return_sequences": True, "return_state": True, "dtype": dtype}
        layer = ONLSTM(24, chunk_size=4, fused=fused, recurrent_dropout=0.2, **options)
        mask = np.arange(7) < np.array([[7], [3], [0]])
        return layer, (np.ones((3, 7, 6), "float32"),), {"mask": mask} if masked else {}

    return make


def of_cell(dtype):
    layer = keras.layers.RNN(ONLSTMCell(24, chunk_size=4, dtype=dtype), dtype=dtype)
    return layer, (np.ones((3, 7, 6), "float32"),), {}


def of_sentences(kind, **options):
    def make(dtype):
        model = kind(len(WORDS), 8, 12, vocabulary=WORDS, dtype=dtype, **options)
        return model, (np.ones((3, 7), "int32"),), {}

    return make


def of_pairs(dtype):
    model = PairClassifier(9, 7, embedding_dim=8, units=12, chunk_size=4, dtype=dtype)
    return model, ((np.ones((3, 7), "int32"), np.ones((3, 5), "int32")),), {}


def of_trees(dtype):
    model = TreeLSTM(len(WORDS), 4, 8, 2, left_dependents=True, vocabulary=WORDS, dtype=dtype)
    trees = [random_tree(list("abcdef"), seed) for seed in range(3)]
    return model, (model.schedule_batch(list(map(model.schedule_tree, trees))).grids,), {}


PROGRAMS = {
    "fused": of_layer(True, False),
    "fused, masked": of_layer(True, True),
    "readable, masked": of_layer(False, True),
    "cell": of_cell,
    "language model": of_sentences(LanguageModel, chunk_size=4),
    "PRPN": of_sentences(PRPN, slots=3, lookback=2),
    "classifier": of_pairs,
    "trees": of_trees,
}


def total(outputs):
    """A number of all that a model returns."""
    flat = [x for x in keras.tree.flatten(outputs) if keras.backend.is_float_dtype(x.dtype)]
    return sum(ops.sum(ops.cast(x, "float32")) for x in flat)


@pytest.fixture(params=PROGRAMS)
def program(request):
    return PROGRAMS[request.param]


@pytest.fixture(params=POLICIES)
def made(program, request):
    keras.utils.set_random_seed(0)
    model, inputs, options = program(request.param)
    if not model.built:
        model(*inputs, **options)
    return model, inputs, options


def lowered(platform, function, *arguments):
    import jax

    text = jax.export.export(jax.jit(function), platforms=[platform])(*arguments).mlir_module()
    return set(re.findall(r"custom_call @(\S+?)\(", text))


@pytest.mark.backend("jax")
@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_programs_are_lowered(made, platform, monkeypatch):
    """Forward and backward; nothing in them calls the host."""
    import jax

    model, inputs, options = made
    # What is traced for an accelerator is not grouped for the caches of a CPU.
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu" if platform == "cuda" else platform)
    variables = model.trainable_variables, model.non_trainable_variables
    trained, kept = ([variable.value for variable in some] for some in variables)

    def step(trained, kept, inputs):
        def loss(trained):
            outputs, kept_now = model.stateless_call(
                trained, kept, *inputs, training=True, **options
            )
            return total(outputs), kept_now

        return jax.value_and_grad(loss, has_aux=True)(trained)

    assert lowered(platform, step, trained, kept, inputs) <= {"cu_threefry2x32_ffi"}


@pytest.mark.backend("jax")
@pytest.mark.parametrize("dtype", POLICIES)
def test_running_sums_are_not_rounded_on_accelerators(dtype):
    """A TPU rounds what it multiplies to bfloat16 unless told otherwise; the master gates' sums,
    forward and back, are told."""
    import jax

    layer, inputs, _ = of_layer(True, False)(dtype)
    layer(*inputs)
    text = jax.jit(jax.grad(lambda x: total(layer(x)))).lower(*inputs).as_text()
    sums = [line for line in text.splitlines() if "dot_general" in line and "<6x6xf32>" in line]
    assert len(sums) >= 2 and all("precision = [HIGHEST, HIGHEST]" in line for line in sums)


@pytest.mark.backend("tensorflow")
def test_operators_have_kernels_for_gpus(made):
    """But for those that no value passes through, and those within what XLA compiles."""
    model, inputs, options = made
    assert not missing(traced(model, inputs, options))


def traced(model, inputs, options):
    import tensorflow as tf

    @tf.function(autograph=False)
    def step(inputs):
        with tf.GradientTape() as tape:
            loss = total(model(*inputs, training=True, **options))
        return loss, tape.gradient(loss, [v.value for v in model.trainable_variables])

    return step.get_concrete_function(keras.tree.map_structure(tf.convert_to_tensor, inputs))


NO_VALUES = {"Placeholder", "NoOp"}


def missing(function):
    """The names of a function's operators that no GPU has a kernel of."""
    from tensorflow.python.framework import kernels

    definition = function.graph.as_graph_def(add_shapes=False)
    functions = {f.signature.name: f for f in definition.library.function}
    found, names, unread = set(), set(), [definition.node]
    while unread:
        for node in unread.pop():
            if node.attr["_XlaMustCompile"].b:
                continue
            found.add(node.op)
            for attribute in node.attr.values():
                called = [attribute.func.name, *(f.name for f in attribute.list.func)]
                for name in (name for name in called if name in functions and name not in names):
                    names.add(name)
                    if not functions[name].attr["_XlaMustCompile"].b:
                        unread.append(functions[name].node_def)
    return {
        name
        for name in found - NO_VALUES - set(functions)
        if not any(
            kernel.device_type in ("GPU", "DEFAULT")
            for kernel in kernels.get_registered_kernels_for_op(name).kernel
        )
    }
