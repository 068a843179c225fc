"""Models in Keras's own files, which are checked before Keras makes room for what they claim.

A `.keras` file is a ZIP archive of a configuration, from which the model is built, and its weights
in HDF5. Keras refuses what claims more than 4 GiB; a small file may not claim that much either.
"""

import zipfile

import h5py
import keras
import numpy as np

from keras_onlstm.utils.keras_private import check_room
from keras_onlstm.utils.reading import check_unpacked, parse_json, reason, unzipped
from keras_onlstm.utils.types import StrPath

__all__ = ["load_keras"]

_CONFIG, _WEIGHTS = "config.json", "model.weights.h5"
_NOT_STORED = 2**20  # bytes of variables that a file may lack: states of stateful layers


def load_keras(path: StrPath) -> keras.Model:
    """Loads a model that Keras saved.

    Args:
        path: `Path` of a `.keras` file.

    Returns:
        The model, not compiled.

    Raises:
        ValueError: if it is damaged, claims to be larger than the file rightly can be, or its
            weights are not finite.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            room = _bytes_of_weights(archive) + _NOT_STORED
            config = parse_json(unzipped(archive, _CONFIG), dict)
        config["compile_config"] = None
        check_room(lambda: keras.saving.deserialize_keras_object(config), room)
        model = keras.saving.load_model(path, compile=False, safe_mode=True)
        _check_finite(model)
    except Exception as error:  # whatever Keras's zip, JSON and HDF5 readers raise
        raise ValueError(
            f"{path}: not a complete model ({reason(error)}). Train again, or restore it from a "
            "copy."
        ) from error
    return model


def _bytes_of_weights(archive):
    """How many bytes the arrays have that the file holds, each no larger than all of it."""
    for member in archive.infolist():
        check_unpacked(member.file_size, member.compress_size)
    size = archive.getinfo(_WEIGHTS).file_size
    total = 0

    def add(name, item):
        nonlocal total
        if isinstance(item, h5py.Dataset):
            total += item.nbytes
            if total > size:  # Keras packs no array
                raise ValueError(f"{size:,} bytes of weights claim to be {total:,} and more")

    with archive.open(_WEIGHTS) as opened, h5py.File(opened) as file:
        file.visititems(add)
    return total


def _check_finite(model):
    for variable in model.trainable_variables:
        if not np.isfinite(keras.ops.convert_to_numpy(variable)).all():
            raise ValueError(f"{variable.path} is not finite: its training has diverged")
