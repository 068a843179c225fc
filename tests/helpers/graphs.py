"""Exported files written by hand. Their distances are the rows of a table, one row per id."""

import numpy as np

from keras_onlstm.runtime import metadata

VOCABULARY = ["<eos>", "<unk>", "N", "the", "cat", "saw", "a", "dog", "do", "n't", "N.N"]
LAYERS = 3
ABOUT = {"graph": "parser", "vocabulary": VOCABULARY, "num_layers": LAYERS, "about": {"by": "hand"}}


def table():
    """Distances (ids, gates, layers)."""
    return np.random.default_rng(7).uniform(size=(len(VOCABULARY), 2, LAYERS)).astype("float32")


def expected(ids, lengths):
    """The outputs of the graphs: (batch, layers, time) by gate."""
    found = table()[np.asarray(ids)]  # (B, T, gates, layers)
    counts = np.arange(found.shape[1]) < np.asarray(lengths)[:, None]
    found = found * counts[:, :, None, None]
    return {
        f"{gate}_distances": found[:, :, place].transpose(0, 2, 1)
        for place, gate in enumerate(("forget", "input"))
    }


def write_onnx(path, about=ABOUT, outputs=("forget_distances", "input_distances")):
    """An ONNX file of any batch and time; without metadata if `about` is `None`."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    constants = {
        "table": table(),
        "zero": np.array(0),
        "one": np.array(1),
        "first": np.array([1]),
        "last": np.array([1, 2]),
    }
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["rows"]),  # (B, T, gates, layers)
        helper.make_node("Transpose", ["rows"], ["transposed"], perm=[0, 2, 3, 1]),
        helper.make_node("Shape", ["ids"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["time"]),
        helper.make_node("Range", ["zero", "time", "one"], ["places"]),
        helper.make_node("Cast", ["lengths"], ["long"], to=TensorProto.INT64),
        helper.make_node("Unsqueeze", ["long", "first"], ["column"]),
        helper.make_node("Less", ["places", "column"], ["counts"]),  # (B, T)
        helper.make_node("Cast", ["counts"], ["factors"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["factors", "last"], ["wide"]),
        helper.make_node("Mul", ["transposed", "wide"], ["found"]),
        helper.make_node("Gather", ["found", "zero"], [outputs[0]], axis=1),
        helper.make_node("Gather", ["found", "one"], [outputs[1]], axis=1),
    ]

    def value(name, dtype, shape):
        return helper.make_tensor_value_info(name, dtype, shape)

    graph = helper.make_graph(
        nodes,
        "by_hand",
        [
            value("ids", TensorProto.INT32, ["batch", "time"]),
            value("lengths", TensorProto.INT32, ["batch"]),
        ],
        [value(name, TensorProto.FLOAT, ["batch", LAYERS, "time"]) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    if about is not None:
        helper.set_model_props(model, {metadata.KEY: metadata.dumps(about)})
    onnx.save(model, path)


def tflite(batch):
    """The bytes of a TensorFlow Lite model of that batch and any time, without metadata."""
    import tensorflow as tf

    class ByHand(tf.Module):
        def __init__(self):
            super().__init__()
            self.table = tf.Variable(table())

        @tf.function(
            input_signature=[
                tf.TensorSpec((batch, None), tf.int32, name="ids"),
                tf.TensorSpec((batch,), tf.int32, name="lengths"),
            ]
        )
        def read(self, ids, lengths):
            counts = tf.range(tf.shape(ids)[1])[None] < lengths[:, None]  # (B, T)
            found = tf.transpose(tf.gather(self.table, ids), (0, 2, 3, 1))
            found *= tf.cast(counts, "float32")[:, None, None]
            return {"forget_distances": found[:, 0], "input_distances": found[:, 1]}

    module = ByHand()
    function = module.read.get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function], module)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    return converter.convert()
