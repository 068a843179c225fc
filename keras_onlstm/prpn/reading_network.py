"""The reading network of PRPN: LSTM layers with gated attention to their past states."""

from typing import Any

import keras
from keras import ops

from keras_onlstm.prpn.parsing_network import UnbiasedLayerNormalization
from keras_onlstm.prpn.recurrence import ReadingInputs, run
from keras_onlstm.prpn.step import banded, banded_attention, features_of, last_rows, uniform
from keras_onlstm.recurrence.lstm import Gates
from keras_onlstm.utils import Shape, Tensor
from keras_onlstm.utils.numerics import fold_in, matmul
from keras_onlstm.utils.validation import check_integer

_KEYED = ("key_kernel", "keys", "gates", "read_mask", "key_mask")  # inputs of attention
_TIME_FIRST = (1, 0, 2)


@keras.saving.register_keras_serializable(package="keras_onlstm")
class ReadingLayer(keras.layers.Layer):
    """One layer of `ReadingNetwork`."""

    def __init__(
        self,
        units: int,
        slots: int,
        attends: bool = True,
        dropout: float = 0.0,
        key_dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        *,
        fused: bool = True,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)  # keeps the dtype of gates
        self.fused = fused
        self.units, self.slots = check_integer("units", units, 1), check_integer("slots", slots, 1)
        self.attends, self.dropout, self.key_dropout = attends, dropout, key_dropout
        self.recurrent_dropout, self.seed = recurrent_dropout, seed
        self.draws = keras.random.SeedGenerator(fold_in(seed, "dropout"))
        self.norms = {
            name: UnbiasedLayerNormalization(dtype=self.dtype_policy, name=f"{name}_norm")
            for name in ("input", "recurrent", "cell")
        }

    def build(self, input_shape: Shape) -> None:
        size, width = features_of(input_shape), len(Gates._fields) * self.units
        shapes = [
            ("kernel", (size, width), size),
            ("bias", (width,), size),
            ("recurrent_kernel", (self.units, width), self.units),
            ("recurrent_bias", (width,), self.units),
        ]
        if self.attends:
            both = size + self.units
            shapes += [("key_kernel", (both, self.units), both), ("key_bias", (self.units,), both)]
        for name, shape, fan_in in shapes:
            initializer = uniform(fan_in**-0.5, self.seed, name)
            setattr(self, name, self.add_weight(shape=shape, initializer=initializer, name=name))
        for name, norm in self.norms.items():
            norm.build((None, self.units if name == "cell" else width))
        self.built = True

    def _draw_mask(self, rate, shape, training):
        """A scaled dropout mask to multiply with, or `None`."""
        if not training or not rate:
            return None
        return keras.random.dropout(ops.ones(shape, self.compute_dtype), rate, seed=self.draws)

    def call(
        self,
        x: Tensor,
        gates: Tensor,
        h: Tensor,
        c: Tensor,
        training: bool = False,
        word_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        batch, length = ops.shape(x)[0], ops.shape(x)[1]
        size, units = x.shape[-1], self.units
        dtype = self.compute_dtype
        x, h, c = (ops.cast(tensor, dtype) for tensor in (x, h, c))
        input_mask = self._draw_mask(self.dropout, (batch, length, size), training)
        z = matmul(x if input_mask is None else x * input_mask, self.kernel)
        z = self.norms["input"](z + ops.convert_to_tensor(self.bias, dtype=dtype))  # (B, T, 4 U)
        recurrent_mask = self._draw_mask(self.recurrent_dropout, (1, units), training)
        keyed: dict[str, Any] = dict.fromkeys(_KEYED)
        if self.attends:
            key_kernel = ops.convert_to_tensor(self.key_kernel, dtype=dtype)
            input_mask = self._draw_mask(self.key_dropout, (batch, length, size), training)
            keys = matmul(x if input_mask is None else x * input_mask, key_kernel[:size])
            keys = keys + ops.convert_to_tensor(self.key_bias, dtype=dtype)
            keyed["key_kernel"], keyed["keys"] = key_kernel[size:], ops.transpose(keys, _TIME_FIRST)
            keyed["gates"] = ops.flip(ops.transpose(gates, _TIME_FIRST), -1)  # oldest first
            for name in ("read_mask", "key_mask"):
                keyed[name] = self._draw_mask(self.key_dropout, (length, batch, units), training)

        def oldest_first(memory):
            memory = memory if self.attends else memory[:, :1]
            return ops.transpose(ops.flip(memory, 1), _TIME_FIRST)

        recurrent, cell = self.norms["recurrent"], self.norms["cell"]
        weights = {
            "kernel": self.recurrent_kernel,
            "bias": self.recurrent_bias,
            "gamma": recurrent.gamma,
            "beta": recurrent.beta,
            "cell_gamma": cell.gamma,
            "cell_beta": cell.beta,
        }
        inputs = ReadingInputs(
            **{name: ops.convert_to_tensor(w, dtype=dtype) for name, w in weights.items()},
            **keyed,
            recurrent_mask=recurrent_mask,
            h=oldest_first(h),
            c=oldest_first(c),
            x=ops.transpose(z, _TIME_FIRST),
            training=training,
        )
        series = [ops.transpose(row, _TIME_FIRST) for row in run(inputs, self.fused)]
        last = [
            ops.flip(last_rows(banded(memory, row), self.slots, word_mask), 1)
            for memory, row in zip((h, c), series, strict=True)
        ]
        return series[0], *last

    def attention(self, x: Tensor, gates: Tensor, h: Tensor, outputs: Tensor) -> Tensor:
        """The attention weights of each step, (B, T, S + T - 1), over the rows of `banded`."""
        series = banded(ops.cast(h, outputs.dtype), outputs)[:, :-1]
        read = ops.concatenate([ops.cast(x, outputs.dtype), series[:, self.slots - 1 :]], -1)
        keys = matmul(read, self.key_kernel)
        keys = keys + ops.convert_to_tensor(self.key_bias, dtype=keys.dtype)
        return banded_attention(keys, series, gates)

    def get_config(self) -> dict[str, Any]:
        names = ["units", "slots", "attends", "dropout", "key_dropout", "recurrent_dropout"]
        return {
            **super().get_config(),
            **{name: getattr(self, name) for name in (*names, "fused", "seed")},
        }


@keras.saving.register_keras_serializable(package="keras_onlstm")
class ReadingNetwork(keras.layers.Layer):
    """LSTM layers with layer normalization, each with a memory of its last steps.

    At every step a layer attends to its memory, as far back as the gates are open. The key comes
    from its input and last hidden state. The weighted sums of h and c are its previous states.

    Source: Shen et al. 2018, section 5.1, https://openreview.net/forum?id=rkgOLb-0W.

    Args:
        units: positive integer, U.
        num_layers: positive integer.
        slots: positive integer, S: number of past steps in memory.
        attends: whether there is attention; without it, each step continues from the last.
        input_dropout: dropout rate of the first layer's inputs.
        inner_dropout: dropout rate of the other layers' inputs, and of keys and their inputs.
        recurrent_dropout: dropout rate of the summed hidden states, with one mask for a whole
            window.
        fused: whether to use the fast loop over time. The reference implementation gives the same
            numbers, and supports second and forward-mode derivatives.
        seed: integer or `None`.
        **kwargs: of `keras.layers.Layer`.

    Call arguments:
        x: (B, T, E) word vectors.
        gates: (B, T, S), in [0, 1].
        states: list of [h, c] of every layer, each (B, S, U), newest first; `None`: zeros.
        training: whether to apply dropout.
        word_mask: boolean (B, T), `False` for padding at the end; or `None`.

    Returns:
        Outputs (B, T, U) of the last layer, and the states after the last step.
    """

    def __init__(
        self,
        units: int,
        num_layers: int = 2,
        slots: int = 15,
        attends: bool = True,
        input_dropout: float = 0.0,
        inner_dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        *,
        fused: bool = True,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        self._config = {
            "units": check_integer("units", units, 1),
            "num_layers": check_integer("num_layers", num_layers, 1),
            "slots": check_integer("slots", slots, 1),
            "attends": attends,
            "input_dropout": input_dropout,
            "inner_dropout": inner_dropout,
            "recurrent_dropout": recurrent_dropout,
            "fused": fused,
            "seed": seed,
        }
        self.layers = [
            ReadingLayer(
                units,
                slots,
                attends,
                dropout=inner_dropout if index else input_dropout,
                key_dropout=inner_dropout,
                recurrent_dropout=recurrent_dropout,
                fused=fused,
                seed=fold_in(seed, index),
                dtype=self.dtype_policy,
                name=f"reading_{index}",
            )
            for index in range(num_layers)
        ]

    def build(self, x_shape: Shape, *_: Any) -> None:
        size = features_of(x_shape)
        for layer in self.layers:
            layer.build((None, None, size))
            size = layer.units
        self.built = True

    def start(self, batch: int | Tensor) -> list[list[Tensor]]:
        """States before a text: zeros, a list of [h, c] of every layer, each (B, S, U)."""
        shape = (batch, self._config["slots"], self._config["units"])
        return [[ops.zeros(shape, self.compute_dtype) for _ in range(2)] for _ in self.layers]

    def call(
        self,
        x: Tensor,
        gates: Tensor,
        states: Any = None,
        training: bool = False,
        word_mask: Tensor | None = None,
    ) -> tuple[Tensor, list[list[Tensor]]]:
        states = self.start(ops.shape(x)[0]) if states is None else states
        last = []
        for layer, (h, c) in zip(self.layers, states, strict=True):
            x, h, c = layer(x, gates, h, c, training=training, word_mask=word_mask)
            last.append([h, c])
        return x, last

    def attention(self, x: Tensor, gates: Tensor, states: Any) -> list[Tensor]:
        """The attention weights of each layer, from inputs as in a call; empty without attention.

        They are (B, T, S + T - 1), over the memory, oldest first, and all outputs but the last.
        """
        shares = []
        for layer, (h, c) in zip(self.layers, states, strict=True):
            outputs, *_ = layer(x, gates, h, c)
            if layer.attends:
                shares.append(layer.attention(x, gates, h, outputs))
            x = outputs
        return shares

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self._config}
