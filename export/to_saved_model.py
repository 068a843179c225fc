"""Exports a trained model to a SavedModel whose endpoints are its graphs, and runs each.

    python export/to_saved_model.py                            # the package's parser
    python export/to_saved_model.py --model runs/logic_inference --output runs/served

It takes any batch size and any length. Every endpoint is compared with Keras, at two batch sizes
and three lengths, before the SavedModel is saved in --output, under the model's name.
`keras-onlstm export saved-model` does the same.
"""

from keras_onlstm.command_line import export
from keras_onlstm.utils.console import ArgumentParser, report


def parse_arguments():
    about = "Exports ON-LSTM models to SavedModels."
    parser = ArgumentParser(prog="to_saved_model.py", description=about)
    export.add_format(parser, "saved-model")
    return parser, parser.parse_args()


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: export.run(options))
