"""Data-parallel training on several devices of one machine."""

from contextlib import suppress

import keras
import numpy as np

__all__ = ["DataParallel"]


class DataParallel:
    """Shares every batch among devices, which hold the same weights.

    On TensorFlow `tf.distribute.MirroredStrategy`, on JAX `keras.distribution.DataParallel`. Takes
    GPUs if there are any, otherwise it divides the processor into virtual devices, which shows that
    a training works on several, and makes nothing faster.

    Make it before anything computes, build and compile the model inside `scope()`, pass the
    optimizer through `prepare` and every batch through `place`.

    Args:
        count: integer, number of devices.

    Raises:
        ValueError: if the backend is PyTorch, if there are fewer GPUs, or if the devices were set
            up before.
    """

    def __init__(self, count):
        self.count = count
        backend = keras.backend.backend()
        if backend == "tensorflow":
            self._strategy = _mirrored(count)
        elif backend == "jax":
            self._distribution = _jax_devices(count)
        else:
            raise ValueError(f"Several devices need TensorFlow or JAX, not {backend}.")

    def scope(self):
        """A context in which models are built and compiled."""
        if keras.backend.backend() == "tensorflow":
            return self._strategy.scope()
        return self._distribution.scope()

    def prepare(self, optimizer):
        """Lets an optimizer clip the gradient of the whole batch.

        Keras 3.15 on TensorFlow clips the share of every device instead, before it adds them up.

        Args:
            optimizer: with or without `global_clipnorm`; it is changed.

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
            # The optimizer adds up what the devices give it.
            return apply([gradient / self.count for gradient in clipped], trainable_variables)

        optimizer.global_clipnorm = None
        optimizer.apply = apply_clipped
        return optimizer

    def place(self, batch):
        """Gives every device its share of a batch.

        Args:
            batch: nested arrays, all (batch, ...), with a batch that `count` divides.

        Returns:
            The same structure, for `train_on_batch`.
        """
        if keras.backend.backend() == "jax":
            return batch  # Keras places it
        import tensorflow as tf

        def share(array):
            parts = np.split(array, self.count)
            return self._strategy.experimental_distribute_values_from_function(
                lambda context: tf.constant(parts[context.replica_id_in_sync_group])
            )

        return keras.tree.map_structure(share, batch)


def _missing(count, found):
    return ValueError(f"{count} devices were asked for, and there are {found}: ask for fewer.")


def _mirrored(count):
    import tensorflow as tf

    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    if kind == "CPU":
        processor = tf.config.list_physical_devices("CPU")[0]
        with suppress(RuntimeError):  # once TensorFlow has started, it keeps the devices it has
            tf.config.set_logical_device_configuration(
                processor, [tf.config.LogicalDeviceConfiguration()] * count
            )
    found = tf.config.list_logical_devices(kind)
    if len(found) < count:
        raise _missing(count, len(found))
    return tf.distribute.MirroredStrategy([f"{kind}:{index}" for index in range(count)])


def _jax_devices(count):
    import jax

    if jax.config.jax_num_cpu_devices < count:
        with suppress(RuntimeError):  # once JAX has started, it keeps the devices it has
            jax.config.update("jax_num_cpu_devices", count)
    found = jax.devices()
    if len(found) < count:
        raise _missing(count, len(found))
    names = [f"{device.platform}:{device.id}" for device in found[:count]]
    return keras.distribution.DataParallel(devices=names, auto_shard_dataset=False)
