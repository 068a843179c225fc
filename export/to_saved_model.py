"""Exports a trained model to a SavedModel whose endpoints are its graphs, and runs each.

    python export/to_saved_model.py                            # the package's parser
    python export/to_saved_model.py --model runs/logic_inference --output runs/served

Any batch size and any length will do. Every endpoint is compared with Keras, at two batch sizes and
three lengths, before the SavedModel gets its place in --output, under the model's name.
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
