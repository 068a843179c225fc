"""Exports a trained model to LiteRT (TensorFlow Lite), one file per graph, and checks each.

    python export/to_tflite.py                                 # the package's parser
    python export/to_tflite.py --model runs/language_modeling --graph step --quantize dynamic

A file takes one batch size and any length. Each is compared with Keras before it is saved.
`keras-onlstm export tflite` does the same.
"""

from keras_onlstm.command_line import export
from keras_onlstm.utils.console import ArgumentParser, report


def parse_arguments():
    description = "Export a trained model to LiteRT."
    parser = ArgumentParser(prog="to_tflite.py", description=description)
    export.add_format(parser, "tflite")
    return parser, parser.parse_args()


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: export.run(options))
