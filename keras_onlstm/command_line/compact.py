"""`keras-onlstm compact`: writes language models with 8-bit weights into one file."""

import argparse
import math
from pathlib import Path

from keras_onlstm.command_line.output import read_output

HELP = "write one or several language models with 8-bit weights into one file"
EXAMPLES = (
    "keras-onlstm compact --model runs/lm --output parser.npz",
    "keras-onlstm compact --model runs/a runs/b runs/c --output parser.npz --data ptb",
)


# fmt: off
def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    add = parser.add_argument
    add("--model", nargs="+", action="extend", required=True, metavar="PATH",
        help="Trained models: .keras or .npz files, or folders of runs. Several models in one file "
        "parse together.")
    add("--output", required=True, metavar="FILE", help="The .npz file to write.")
    add("--data", metavar="DIR",
        help="Folder of a corpus. The perplexity of its validation text is measured with and "
        "without 8 bits (default: the corpus of the run).")
    add("--characters", action="store_true",
        help="The models read characters. Not needed for runs.")


# fmt: on
def run(options: argparse.Namespace) -> None:
    """Writes the file, and prints the validation perplexity before and after rounding to 8 bits."""
    output = read_output(options)
    if output is None or output.is_directory or output.path.suffix != ".npz":
        raise ValueError(
            f"--output {options.output}: the name of a compact model must end in .npz."
        )
    path = output.path
    from keras_onlstm.models import Ensemble
    from keras_onlstm.models.ensemble import load_eight_bit, save_eight_bit

    loaded = [_load(source) for source in options.model]
    models, origins = [model for model, _ in loaded], [origin for _, origin in loaded]
    for source, model in zip(options.model, models, strict=True):
        if len(models) > 1 and hasattr(model, "models"):
            raise ValueError(
                f"{source}: contains several models. To combine models, pass a file for each."
            )
    model = models[0] if len(models) == 1 else Ensemble(models)
    pairs = zip(options.model, models, strict=True)
    texts = [_validation_ids(source, model, options) for source, model in pairs]
    before = _perplexities(models, texts)  # raises errors before anything is written
    save_eight_bit(model, path, origins[0] if len(origins) == 1 else origins)
    print(f"{path}: {path.stat().st_size / 1e6:.2f} MB", flush=True)
    rounded = load_eight_bit(path)[0]
    after = _perplexities(rounded.models if len(models) > 1 else [rounded], texts)
    for source, *perplexities in zip(options.model, before, after, strict=True):
        if not perplexities[0]:
            print(f"{source}: perplexity not measured. Pass a corpus: --data DIR")
        for exact, eight_bit in zip(*perplexities, strict=True):
            print(f"{source}: validation perplexity {exact:.2f}, with 8 bits {eight_bit:.2f}")


def _load(path):
    """Loads a model and the metadata of its origin."""
    from keras_onlstm.loading import load_model
    from keras_onlstm.models.ensemble import check_eight_bit
    from keras_onlstm.runtime import FORMATS
    from keras_onlstm.text.vocabulary import check_vocabulary

    if Path(path).suffix in FORMATS and not Path(path).is_dir():
        raise ValueError(f"{path}: is an exported file. Pass the model that it was exported from.")
    model, metadata = load_model(path)
    if not hasattr(model, "distances"):
        raise ValueError(f"{path}: {type(model).__name__}, not a LanguageModel.")
    check_eight_bit(model, path)
    check_vocabulary(model.vocabulary, path)
    if Path(path).is_dir():
        from keras_onlstm.runs.directory import origin

        metadata = origin(path)
    return model, metadata


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
    """For each model a list: its perplexity, or those of an ensemble's models. Empty if no text."""
    from keras_onlstm.training.language_models import evaluation

    return [
        []
        if ids is None
        else [
            math.exp(evaluation(part, "validation", ids, 10)())
            for part in getattr(model, "models", [model])
        ]
        for model, ids in zip(models, texts, strict=True)
    ]
