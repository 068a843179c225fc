"""`keras-onlstm compact`: writes language models at a quarter of their size into one file."""

import argparse
import math
from pathlib import Path

from keras_onlstm.command_line.output import read_output

__all__ = ["EXAMPLES", "HELP", "add_arguments", "run"]

HELP = "one or several language models in one file, with weights of 8 bits"
EXAMPLES = (
    "keras-onlstm compact --model runs/lm --output parser.npz",
    "keras-onlstm compact --model runs/a runs/b runs/c --output parser.npz --data ptb",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    add = parser.add_argument
    add(
        "--model",
        nargs="+",
        action="extend",
        required=True,
        metavar="PATH",
        help="a .keras or an .npz file, or a run; several for models that parse together",
    )
    add("--output", required=True, metavar="FILE", help="what to write, an .npz file")
    add(
        "--data",
        metavar="DIR",
        help="directory of the corpus on whose validation text to measure what 8 bits cost; "
        "default: that of a run",
    )
    add("--characters", action="store_true", help="the models read characters; of runs it is known")


def run(options: argparse.Namespace) -> None:
    """Writes the file, and prints the validation perplexity before and after rounding to 8 bits.

    Args:
        options: parsed arguments.

    Raises:
        FileNotFoundError: if a model or the corpus is missing.
        ValueError: if a model has no compact form, or the models cannot be combined.
        OSError: if the file cannot be written.
    """
    place = read_output(options)
    if place is None or place.is_directory or place.path.suffix != ".npz":
        raise ValueError(f"{options.output}: a compact model ends in .npz.")
    output = place.path
    from keras_onlstm.models import Ensemble
    from keras_onlstm.models.ensemble import load_eight_bit, save_eight_bit

    loaded = [_load(path) for path in options.model]
    models, about = [model for model, _ in loaded], [about for _, about in loaded]
    for path, model in zip(options.model, models, strict=True):
        if len(models) > 1 and hasattr(model, "models"):
            raise ValueError(f"{path}: holds several models already. Name those one by one.")
    whole = models[0] if len(models) == 1 else Ensemble(models)
    pairs = zip(options.model, models, strict=True)
    texts = [_validation_ids(path, model, options) for path, model in pairs]
    before = _perplexities(models, texts)  # raises errors before anything is written
    save_eight_bit(whole, output, about[0] if len(about) == 1 else about)
    print(f"{output}: {output.stat().st_size / 1e6:.1f} MB", flush=True)
    rounded = load_eight_bit(output)[0]
    after = _perplexities(rounded.models if len(models) > 1 else [rounded], texts)
    for path, *both in zip(options.model, before, after, strict=True):
        if not both[0]:
            print(f"{path}: --data DIR, a corpus, would tell what 8 bits cost")
        for exact, small in zip(*both, strict=True):
            print(f"{path}: validation perplexity {exact:.2f}, with 8 bits {small:.2f}")


def _load(path):
    """Loads a model and the metadata about its origin."""
    from keras_onlstm.loading import load_model
    from keras_onlstm.models.ensemble import check_eight_bit
    from keras_onlstm.runtime import FORMATS
    from keras_onlstm.text.vocabulary import check_vocabulary

    if Path(path).suffix in FORMATS and not Path(path).is_dir():
        raise ValueError(f"{path}: is exported already. Name the model it was exported from.")
    model, about = load_model(path)
    if not hasattr(model, "distances"):
        raise ValueError(f"{path}: {type(model).__name__}, not a LanguageModel.")
    check_eight_bit(model, path)
    check_vocabulary(model.vocabulary, path)
    if Path(path).is_dir():
        from keras_onlstm.runs.directory import origin

        about = origin(path)
    return model, about


def _validation_ids(path, model, options):
    """Ids of the validation text of a model, or `None`."""
    from keras_onlstm.reader import stored_argument
    from keras_onlstm.text.corpus import encode, find

    characters = options.characters or stored_argument(path, "characters", (bool,))
    data = options.data
    if data is None:
        [data, *others] = stored_argument(path, "data", ([str],)) or [None]
        if data is None or others or not Path(data).is_dir():
            return None
    return encode(find(data, "valid"), model.vocabulary, "character" if characters else "word")


def _perplexities(models, texts):
    """Perplexities of each model, or of an ensemble's models; none without a text."""
    from keras_onlstm.training.language_models import evaluation

    return [
        [
            math.exp(evaluation(one, "validation", ids, 10)())
            for one in getattr(model, "models", [model])
        ]
        if ids is not None
        else []
        for model, ids in zip(models, texts, strict=True)
    ]
