"""Functions to time on JAX. They take no arguments and wait for their results."""

import jax
import jax.numpy as jnp
from configurations import MATMULS
from layers import arrays, product_arrays, stack
from models import functions


def build(name, configuration, dtype):
    """Functions to time, by measure: `forward` and `train`."""
    if configuration.model:
        return functions(name, configuration, dtype)
    if name == MATMULS:
        return _matmuls(configuration, dtype)
    x, weights = (jnp.asarray(a, dtype) for a in arrays(configuration))
    policy = "float32" if dtype == "float32" else f"mixed_{dtype}"
    model = stack(name, configuration, policy)
    variables = [v.value for v in model.trainable_variables]
    others = [v.value for v in model.non_trainable_variables]

    def call(variables, x, training):
        return model.stateless_call(variables, others, x, training=training)[0]

    def loss(variables, x):
        return jnp.sum((call(variables, x, True) * weights).astype("float32"))

    forward = jax.jit(lambda v, x: call(v, x, False))
    train = jax.jit(jax.grad(loss, argnums=(0, 1)))
    return {
        "forward": lambda: jax.block_until_ready(forward(variables, x)),
        "train": lambda: jax.block_until_ready(train(variables, x)),
    }


def _matmuls(configuration, dtype):
    layers = [
        {name: jnp.asarray(a, dtype) for name, a in layer.items()}
        for layer in product_arrays(configuration)
    ]

    def loop(matrix, state):
        """T products of (M, L) and (L, B), each of which depends on the previous one."""

        def body(carry, _):
            state, total = carry
            product = matrix @ state
            return (state + jnp.sum(product) * 1e-9, total + product), None

        total = jnp.zeros((matrix.shape[0], state.shape[1]), dtype)
        return jax.lax.scan(body, (state, total), length=configuration.time)[0][1]

    def forward(layers):
        products = [a["inputs"] @ a["kernel"] for a in layers]
        return products + [loop(a["kernel_t"], a["h"]) for a in layers]

    def train(layers):
        products = forward(layers)
        for a in layers:
            products.append(loop(a["recurrent_kernel"], a["z"]))
            products += [a["inputs"].T @ a["dz"], a["h_tm1"].T @ a["dz"], a["dz"] @ a["kernel"].T]
        return products

    forward, train = jax.jit(forward), jax.jit(train)
    return {
        "forward": lambda: jax.block_until_ready(forward(layers)),
        "train": lambda: jax.block_until_ready(train(layers)),
    }


def device_bytes():
    """Bytes in use on the device and their peak, or `None` if unknown."""
    stats = jax.devices()[0].memory_stats() or {}
    return (stats["bytes_in_use"], stats["peak_bytes_in_use"]) if stats else None


def device():
    return None if jax.default_backend() == "cpu" else jax.devices()[0].device_kind


def rates(dtype):
    """A large matrix product with its number of operations, and a copy with its bytes moved."""
    size = 4096 if dtype == "float32" else 8192
    square, long = jnp.ones((size, size), dtype), jnp.ones(2**28)
    product, copy = jax.jit(jnp.matmul), jax.jit(lambda x: x + 1)
    wait = jax.block_until_ready
    return (lambda: wait(product(square, square)), 2 * size**3), (lambda: wait(copy(long)), 2**31)
