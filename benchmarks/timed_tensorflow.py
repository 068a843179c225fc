"""Functions to time on TensorFlow. They take no arguments and wait for their results."""

import tensorflow as tf
from configurations import MATMULS
from layers import arrays, product_arrays, stack
from models import functions


def _wait(outputs):
    for output in tf.nest.flatten(outputs):
        tf.reshape(output, [-1])[:1].numpy()


def build(name, configuration, dtype):
    """Functions to time, by measure: `forward` and `train`."""
    x, weights = (tf.constant(a, dtype) for a in arrays(configuration))
    if configuration.model:
        return functions(name, configuration, dtype)
    if name == MATMULS:
        return _matmuls(configuration, dtype)
    policy = "float32" if dtype == "float32" else f"mixed_{dtype}"
    model = stack(name, configuration, policy)
    jit = name.endswith("jit_compile")
    variables = [v.value for v in model.trainable_variables]

    @tf.function(jit_compile=jit)
    def forward(x):
        return model(x, training=False)

    @tf.function(jit_compile=jit)
    def train(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.cast(model(x, training=True) * weights, "float32"))
        return tape.gradient(loss, [x, *variables])

    return {"forward": lambda: _wait(forward(x)), "train": lambda: _wait(train(x))}


def _matmuls(configuration, dtype):
    layers = [
        {name: tf.constant(a, dtype) for name, a in layer.items()}
        for layer in product_arrays(configuration)
    ]

    def loop(matrix, state):
        """T products of (M, L) and (L, B), each of which depends on the previous one."""

        def body(t, state, total):
            product = matrix @ state
            return t + 1, state + tf.reduce_sum(product) * 1e-9, total + product

        total = tf.zeros((matrix.shape[0], state.shape[1]), dtype)
        steps = configuration.time
        return tf.while_loop(lambda t, *_: t < steps, body, (0, state, total))[2]

    def forward(layers):
        products = [a["inputs"] @ a["kernel"] for a in layers]
        return products + [loop(a["kernel_t"], a["h"]) for a in layers]

    def train(layers):
        products = forward(layers)
        for a in layers:
            products.append(loop(a["recurrent_kernel"], a["z"]))
            products.append(tf.matmul(a["inputs"], a["dz"], transpose_a=True))
            products.append(tf.matmul(a["h_tm1"], a["dz"], transpose_a=True))
            products.append(tf.matmul(a["dz"], a["kernel"], transpose_b=True))
        return products

    forward, train = (tf.function(f, jit_compile=True) for f in (forward, train))
    return {"forward": lambda: _wait(forward(layers)), "train": lambda: _wait(train(layers))}


def device_bytes():
    """Bytes in use on the device and their peak, or `None` if unknown."""
    if not tf.config.list_physical_devices("GPU"):
        return None
    memory = tf.config.experimental.get_memory_info("GPU:0")
    return memory["current"], memory["peak"]


def device():
    devices = tf.config.list_physical_devices("GPU")
    return tf.config.experimental.get_device_details(devices[0])["device_name"] if devices else None


def rates(dtype):
    """A large matrix product with its number of operations, and a copy with its bytes moved."""
    size = 4096 if dtype == "float32" else 8192
    square, long = tf.ones((size, size), dtype), tf.ones(2**28)
    return (lambda: _wait(square @ square), 2 * size**3), (lambda: _wait(long + 1), 2**31)
