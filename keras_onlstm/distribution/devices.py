"""Data-parallel training on several devices of one or several processes."""

from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import keras
import numpy as np

from keras_onlstm.utils import Tensor
from keras_onlstm.utils.backends_tensorflow_jax import tensorflow_has_gpu
from keras_onlstm.utils.validation import module_getattr, renamed_attribute


class DataParallel:
    """Splits every batch among devices, which hold the same weights.

    It is `tf.distribute.MirroredStrategy` on TensorFlow, `keras.distribution.DataParallel` on JAX.
    Without GPUs, it divides the CPU into virtual devices, which are for tests and not faster.

    Make it before anything computes, build and compile the model inside `scope()`, pass the
    optimizer through `prepare` and every batch through `distribute`, and compute inside
    `computing()`. `count` is the number of devices of every process; on JAX a batch is split among
    those of all connected processes.
    """

    place = renamed_attribute("place", "distribute")

    def __init__(self, count: int) -> None:
        self.count = count
        backend = keras.backend.backend()
        if backend not in ("tensorflow", "jax"):
            raise ValueError(f"Several devices need TensorFlow or JAX, not {backend}.")
        self._is_jax = backend == "jax"
        self._strategy: Any = _jax_devices(count) if self._is_jax else _mirrored(count)

    def scope(self) -> AbstractContextManager[Any]:
        """A context in which models are built and compiled."""
        return self._strategy.scope()

    def computing(self) -> AbstractContextManager[Any]:
        """A context in which a built model is trained or models are evaluated."""
        return self._strategy.scope() if self._is_jax else nullcontext()

    def prepare(self, optimizer: keras.optimizers.Optimizer) -> keras.optimizers.Optimizer:
        """Modifies an optimizer, and returns it, so that it clips the gradient of the whole batch.

        Keras 3.15 on TensorFlow clips the gradient of each device instead, before it sums them.
        """
        norm = optimizer.global_clipnorm
        if self._is_jax or norm is None:
            return optimizer
        import tensorflow as tf

        apply = optimizer.apply

        def apply_clipped(grads, trainable_variables=None):
            context = tf.distribute.get_replica_context()
            totals = context.all_reduce(tf.distribute.ReduceOp.SUM, list(grads))
            clipped, _ = tf.clip_by_global_norm(totals, norm)
            # The optimizer sums the gradients of all devices.
            return apply([gradient / self.count for gradient in clipped], trainable_variables)

        optimizer.global_clipnorm = None
        optimizer.apply = apply_clipped
        return optimizer

    def distribute(self, batch: Any) -> Any:
        """Splits this process's nested arrays (batch, ...) among devices, for `train_on_batch`.

        The batch size must be divisible by `count`.
        """
        if self._is_jax:
            return batch  # Keras distributes it
        import tensorflow as tf

        def split(array):
            parts = np.split(array, self.count)
            return self._strategy.experimental_distribute_values_from_function(
                lambda context: tf.constant(parts[context.replica_id_in_sync_group])
            )

        return keras.tree.map_structure(split, batch)


def check_processes(count: int) -> None:
    """Raises a `ValueError` if the backend cannot train in this number of processes."""
    backend = keras.backend.backend()
    if count > 1 and backend != "jax":
        raise ValueError(f"--num-processes {count}: needs JAX (KERAS_BACKEND=jax), not {backend}.")


def replica_weight(weights: Tensor | None) -> float | Tensor:
    """Factor that corrects the mean over a replica's part of a batch, from its sample weights.

    On TensorFlow a replica takes the mean over its own part, and the loss is the mean over the
    replicas, which is wrong if total weights differ. On JAX every mean is over the whole batch.
    """
    if keras.backend.backend() != "tensorflow" or weights is None:
        return 1.0
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return 1.0
    own = tf.reduce_sum(weights)
    total = context.all_reduce(tf.distribute.ReduceOp.SUM, own)
    return tf.math.divide_no_nan(own * context.num_replicas_in_sync, total)


def _check_available(count, available):
    if available < count:
        raise ValueError(f"--devices {count}: this machine has only {available}. Ask for fewer.")


def _mirrored(count):
    import tensorflow as tf

    kind = "GPU" if tensorflow_has_gpu() else "CPU"
    if kind == "CPU":
        with suppress(RuntimeError):  # once TensorFlow has started, it keeps the devices it has
            tf.config.set_logical_device_configuration(
                tf.config.list_physical_devices("CPU")[0],
                [tf.config.LogicalDeviceConfiguration()] * count,
            )
    _check_available(count, len(tf.config.list_logical_devices(kind)))
    return tf.distribute.MirroredStrategy([f"{kind}:{index}" for index in range(count)])


def _jax_devices(count):
    import jax

    if jax.config.jax_num_cpu_devices < count:
        with suppress(RuntimeError):  # once JAX has started, it keeps the devices it has
            jax.config.update("jax_num_cpu_devices", count)
    by_process: dict[int, list[str]] = {}
    for device in jax.devices():
        by_process.setdefault(device.process_index, []).append(f"{device.platform}:{device.id}")
    _check_available(count, min(map(len, by_process.values())))
    names = [name for process in sorted(by_process) for name in by_process[process][:count]]
    return keras.distribution.DataParallel(devices=names, auto_shard_dataset=False)


__getattr__ = module_getattr(__name__, {"share_of": "replica_weight"})
