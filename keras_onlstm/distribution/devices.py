"""Data-parallel training on several devices of one or several processes."""

from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import keras
import numpy as np

from keras_onlstm.utils import Tensor
from keras_onlstm.utils.backends_tensorflow_jax import has_gpu

__all__ = ["DataParallel", "check_processes", "share_of"]


class DataParallel:
    """Splits every batch among devices, which hold the same weights.

    It is `tf.distribute.MirroredStrategy` on TensorFlow, `keras.distribution.DataParallel` on JAX.
    Without GPUs, it divides the CPU into virtual devices, which are for tests and not faster.

    Make it before anything computes, build and compile the model inside `scope()`, pass the
    optimizer through `prepare` and every batch through `place`, and compute inside `computing()`.

    Args:
        count: integer, number of devices of every process. On JAX a batch is split among the
            devices of all `joined` processes.

    Raises:
        ValueError: if the backend is PyTorch, if there are fewer GPUs, or if the devices were set
            up before.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        backend = keras.backend.backend()
        if backend == "tensorflow":
            self._strategy = _mirrored(count)
        elif backend == "jax":
            self._distribution = _jax_devices(count)
        else:
            raise ValueError(f"Several devices need TensorFlow or JAX, not {backend}.")

    def scope(self) -> AbstractContextManager[Any]:
        """A context in which models are built and compiled."""
        if keras.backend.backend() == "tensorflow":
            return self._strategy.scope()
        return self._distribution.scope()

    def computing(self) -> AbstractContextManager[Any]:
        """A context in which a built model is trained or models are evaluated."""
        if keras.backend.backend() == "tensorflow":
            return nullcontext()  # a model keeps its strategy
        return self._distribution.scope()

    def prepare(self, optimizer: keras.optimizers.Optimizer) -> keras.optimizers.Optimizer:
        """Lets an optimizer clip the gradient of the whole batch.

        Keras 3.15 on TensorFlow clips the gradient of each device instead, before it sums them.

        Args:
            optimizer: with or without `global_clipnorm`; modified in place.

        Returns:
            The optimizer.
        """
        norm = optimizer.global_clipnorm
        if keras.backend.backend() == "jax" or norm is None:
            return optimizer
        import tensorflow as tf

        apply = optimizer.apply

        def apply_clipped(grads, trainable_variables=None):
            context = tf.distribute.get_replica_context()
            whole = context.all_reduce(tf.distribute.ReduceOp.SUM, list(grads))
            clipped, _ = tf.clip_by_global_norm(whole, norm)
            # The optimizer sums the gradients of all devices.
            return apply([gradient / self.count for gradient in clipped], trainable_variables)

        optimizer.global_clipnorm = None
        optimizer.apply = apply_clipped
        return optimizer

    def place(self, batch: Any) -> Any:
        """Gives every device its share of a batch.

        Args:
            batch: nested arrays (batch, ...), with a batch size divisible by `count`; with several
                processes, the share of this one.

        Returns:
            The same structure, for `train_on_batch`.
        """
        if keras.backend.backend() == "jax":
            return batch  # Keras distributes it
        import tensorflow as tf

        def share(array):
            parts = np.split(array, self.count)
            return self._strategy.experimental_distribute_values_from_function(
                lambda context: tf.constant(parts[context.replica_id_in_sync_group])
            )

        return keras.tree.map_structure(share, batch)


def check_processes(count: int) -> None:
    """Checks that the backend can train in several processes.

    Args:
        count: number of processes.

    Raises:
        ValueError: if it cannot.
    """
    backend = keras.backend.backend()
    if count > 1 and backend != "jax":
        raise ValueError(f"--num-processes {count}: needs JAX (KERAS_BACKEND=jax), not {backend}.")


def share_of(weights: Tensor | None) -> float | Tensor:
    """Factor that corrects the mean over a replica's part of a batch.

    On TensorFlow a replica takes the mean over its own part, and the loss is the mean over the
    replicas, which is wrong if total weights differ. On JAX every mean is over the whole batch.

    Args:
        weights: sample weights of the replica's targets, or `None` if all are 1.

    Returns:
        Factor for the replica's mean: 1 if total weights are equal or there is only one replica.
    """
    if keras.backend.backend() != "tensorflow" or weights is None:
        return 1.0
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return 1.0
    own = tf.reduce_sum(weights)
    whole = context.all_reduce(tf.distribute.ReduceOp.SUM, own)
    return tf.math.divide_no_nan(own * context.num_replicas_in_sync, whole)


def _missing(count, available):
    return ValueError(f"{count} devices were asked for, and there are {available}: ask for fewer.")


def _mirrored(count):
    import tensorflow as tf

    kind = "GPU" if has_gpu() else "CPU"
    if kind == "CPU":
        processor = tf.config.list_physical_devices("CPU")[0]
        with suppress(RuntimeError):  # once TensorFlow has started, it keeps the devices it has
            tf.config.set_logical_device_configuration(
                processor, [tf.config.LogicalDeviceConfiguration()] * count
            )
    devices = tf.config.list_logical_devices(kind)
    if len(devices) < count:
        raise _missing(count, len(devices))
    return tf.distribute.MirroredStrategy([f"{kind}:{index}" for index in range(count)])


def _jax_devices(count):
    import jax

    if jax.config.jax_num_cpu_devices < count:
        with suppress(RuntimeError):  # once JAX has started, it keeps the devices it has
            jax.config.update("jax_num_cpu_devices", count)
    of_process: dict[int, list[str]] = {}
    for device in jax.devices():
        of_process.setdefault(device.process_index, []).append(f"{device.platform}:{device.id}")
    available = min(map(len, of_process.values()))
    if available < count:
        raise _missing(count, available)
    names = [name for process in sorted(of_process) for name in of_process[process][:count]]
    return keras.distribution.DataParallel(devices=names, auto_shard_dataset=False)
