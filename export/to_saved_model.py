"""Exports a trained model to a SavedModel with one endpoint per graph, and checks each endpoint.

    python export/to_saved_model.py                            # the package's parser
    python export/to_saved_model.py --model runs/logic_inference --output runs/served

The endpoints take any batch size and length. Each is compared with Keras before the SavedModel is
saved in --output, under the name of the model. `keras-onlstm export saved-model` does the same.
"""

from keras_onlstm.command_line import export
from keras_onlstm.utils.console import ArgumentParser, report


def parse_arguments():
    description = "Export a trained model to SavedModel."
    parser = ArgumentParser(prog="to_saved_model.py", description=description)
    export.add_format(parser, "saved-model")
    return parser, parser.parse_args()


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: export.run(options))
