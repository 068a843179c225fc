"""Tables and plots of the results of a benchmark."""

import statistics

from configurations import (
    CELL,
    KERAS_LSTM,
    MATMULS,
    ONLSTM,
    PRPN,
    SEQUENTIAL,
    TORCH_LSTM,
    TREES,
    WORD_BY_WORD,
    get,
    variant,
)

from keras_onlstm.utils.files import replacing

NAMES = {"tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch"}


def check(results):
    """Raises a ValueError if these are not results of run.py."""
    if not isinstance(results, dict) or not {"seconds", "backends", "memory"} <= results.keys():
        raise ValueError("seconds, backends or memory is missing")


def replace(path, text):
    """Writes a file atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def quartiles(samples):
    """First quartile, median and third quartile."""
    if len(samples) == 1:
        return samples * 3
    return statistics.quantiles(samples, n=4, method="inclusive")


def ratios(samples, others):
    """Quartiles of the ratios between times of the same round."""
    return quartiles([a / b for a, b in zip(samples, others, strict=True)])


def _spread(values, scale, digits):
    low, middle, high = (f"{value * scale:.{digits}f}" for value in values)
    return f"{middle} ({low} to {high})"


def _samples(timed, backend, implementation, measure):
    return timed.get(backend, {}).get(implementation, {}).get(measure)


def rows(results, name, dtype, measure):
    """Rows for every implementation: backend, name, and quartiles or `None` by column."""
    timed = results["seconds"][name][dtype]
    lstm = _samples(timed, "torch", TORCH_LSTM, measure)
    rows = []
    for backend, implementations in timed.items():
        for implementation, samples in implementations.items():
            seconds = samples.get(measure)
            if not seconds:
                continue
            cell = _samples(timed, backend, CELL, measure)
            matmuls = _samples(timed, backend, MATMULS, measure)
            kind, options = variant(implementation)
            with_lstm = (PRPN, KERAS_LSTM) if kind == PRPN else (KERAS_LSTM, *options)
            keras_lstm = _samples(timed, backend, ", ".join(with_lstm), measure)
            by_word = _samples(timed, backend, f"{PRPN}, {WORD_BY_WORD}", measure)
            sequential = _samples(timed, backend, SEQUENTIAL, measure)
            step = samples["train"] if measure == "planning" else None
            rows.append(
                {
                    "backend": backend,
                    "implementation": implementation,
                    "seconds": quartiles(seconds),
                    "to torch.nn.LSTM": ratios(seconds, lstm) if lstm else None,
                    "to keras.layers.LSTM": ratios(seconds, keras_lstm) if keras_lstm else None,
                    "to RNN(ONLSTMCell)": ratios(seconds, cell) if cell else None,
                    "to matrix products": ratios(seconds, matmuls) if matmuls else None,
                    "to word by word": ratios(seconds, by_word) if by_word else None,
                    "to sequential": ratios(seconds, sequential) if sequential else None,
                    "to a training step": ratios(seconds, step) if step else None,
                    "first": samples["first"][measure],
                }
            )
    return rows


RATIOS = (
    "to torch.nn.LSTM",
    "to keras.layers.LSTM",
    "to RNN(ONLSTMCell)",
    "to matrix products",
    "to word by word",
    "to sequential",
    "to a training step",
)
DIGITS = {"to a training step": 3}  # 2 for all others


def _table(results, name, dtype, measure):
    table_rows = rows(results, name, dtype, measure)
    ratio_names = [ratio for ratio in RATIOS if any(row[ratio] for row in table_rows)]
    head = ["backend", "implementation", "ms", *ratio_names, "first call, s"]
    configuration = get(name, results["quick"])
    # Planning has no products, and the bytes that TreeLSTM moves depend on the trees.
    rates = {} if configuration.model == TREES else results["rates"].get(dtype, {})
    if rates:
        head += ["of the matrix rate", "of the bandwidth"]
    if configuration.vocabulary:
        head.insert(3, "tokens/s")
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in table_rows:
        cells = [NAMES[row["backend"]], f"`{row['implementation']}`"]
        cells.append(_spread(row["seconds"], 1e3, 1))
        if configuration.vocabulary:
            cells.append(f"{configuration.tokens / row['seconds'][1]:.0f}")
        cells += [_spread(row[r], 1, DIGITS.get(r, 2)) if row[r] else "" for r in ratio_names]
        cells.append(f"{row['first']:.1f}")
        if rates:
            flops, bandwidth = rates[row["backend"]]
            seconds = row["seconds"][1]
            width = 4 if dtype == "float32" else 2
            cells.append(f"{configuration.flops(measure) / seconds / flops:.1%}")
            moved = configuration.bytes_moved(measure, width)
            cells.append(f"{moved / seconds / bandwidth:.1%}")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _memory(results):
    lines = ["| configuration | backend | implementation | MB |", "|---|---|---|---|"]
    for name, backends in results["memory"].items():
        for backend, implementations in backends.items():
            for implementation, megabytes in implementations.items():
                cells = [name, NAMES[backend], f"`{implementation}`", f"{megabytes:.0f}"]
                lines.append("| " + " | ".join(cells) + " |")
    return lines


def linearity(results, dtype, measure):
    """Ratio of the times per step of a long and a short sequence, by (backend, name)."""
    seconds = results["seconds"]
    if not {"long", "language-model"} <= seconds.keys():
        return {}
    long, short = (get(name, results["quick"]).time for name in ("long", "language-model"))
    ratios = {}
    for row in rows(results, "long", dtype, measure):
        key = row["backend"], row["implementation"]
        other = _samples(seconds["language-model"][dtype], *key, measure)
        ratios[key] = (row["seconds"][1] / statistics.median(other)) / (long / short)
    return ratios


def tables(results):
    """All results as Markdown."""
    machine = results["machine"]
    lines = [f"{machine['processor']}, {machine['system']}; {results['date']}.", ""]
    for backend, metadata in results["backends"].items():
        versions = ", ".join(f"{k} {v}" for k, v in metadata["versions"].items())
        device = metadata["device"] or f"{metadata['threads']} cores"
        lines.append(f"- {NAMES[backend]} on {device}: Python {metadata['python']}, {versions}")
    lines += ["", f"`{results['command'].strip()}`", ""]
    lines += ["Medians, with quartiles in brackets. Ratios compare times of the same round.", ""]
    for dtype, rates in results["rates"].items():
        for backend, (flops, bandwidth) in rates.items():
            text = f"{flops / 1e12:.1f} TFLOP/s in a large product, {bandwidth / 1e9:.0f} GB/s"
            lines += [f"{NAMES[backend]}, {dtype}: {text} in a copy.", ""]
    for name, dtypes in results["seconds"].items():
        c = get(name, results["quick"])
        units = ", ".join(map(str, c.units))
        lines += [f"### {name}", ""]
        text = f"Batch {c.batch}, time {c.time}, input {c.input_dim}, units {units}"
        lines += [f"{text}, chunk size {c.chunk_size}." if c.chunk_size else f"{text}.", ""]
        for dtype in dtypes:
            for measure in c.measures:
                lines += [f"{measure}, {dtype}:", "", *_table(results, name, dtype, measure), ""]
    for dtype in results["seconds"].get("long", {}):
        for measure in ("forward", "train"):
            lines += [f"### Time per step of the long sequence, {measure}, {dtype}", ""]
            lines += ["| backend | implementation | to the short one |", "|---|---|---|"]
            for (backend, name), ratio in linearity(results, dtype, measure).items():
                lines.append(f"| {NAMES[backend]} | `{name}` | {ratio:.2f} |")
            lines.append("")
    if results["memory"]:
        lines += ["### Peak memory of a training step, minus memory in use between steps", ""]
        lines += [*_memory(results), ""]
    return "\n".join(lines)


def plot(results, directory):
    """Writes a plot of every configuration, as SVG and PNG."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    for name, dtypes in results["seconds"].items():
        for dtype in dtypes:
            measures = get(name, results["quick"]).measures
            figure, axes = pyplot.subplots(
                1, len(measures), figsize=(4.6 * len(measures) + 1.2, 4.6), squeeze=False
            )
            for column, (axis, measure) in enumerate(zip(axes[0], measures, strict=True)):
                _bars(axis, rows(results, name, dtype, measure), measure, label=column == 0)
            figure.suptitle(f"{name}, {dtype}: milliseconds", x=0.01, ha="left", fontsize=11)
            figure.tight_layout()
            for suffix in ("svg", "png"):
                path = directory / f"{name}-{dtype}.{suffix}"
                with replacing(path) as temporary:
                    figure.savefig(temporary, dpi=150)
            pyplot.close(figure)


def _bars(axis, rows, measure, label):
    colours = {ONLSTM: "#1b6ca8", MATMULS: "#c8c8c8", TORCH_LSTM: "#b5651d"}
    labels, positions, y, last = [], [], 0.0, None
    for row in rows:
        y += 1.0 if row["backend"] == last else 1.6
        last = row["backend"]
        low, middle, high = (value * 1e3 for value in row["seconds"])
        name = row["implementation"]
        axis.barh(y, middle, 0.72, color=colours.get(name.split(",")[0], "#9db8cc"))
        axis.errorbar(
            middle, y, xerr=[[middle - low], [high - middle]], color="#444444", linewidth=1
        )
        axis.text(high, y, f"  {middle:.0f}" if middle >= 10 else f"  {middle:.2g}", va="center")
        labels.append(f"{name}, {NAMES[row['backend']]}")
        positions.append(y)
    axis.set_yticks(positions, labels if label else [""] * len(labels))
    axis.invert_yaxis()
    axis.set_title(measure, fontsize=10, loc="left")
    axis.margins(x=0.15)
    axis.tick_params(length=0)
    axis.set_xticks([])
    for side in ("top", "right", "bottom"):
        axis.spines[side].set_visible(False)
