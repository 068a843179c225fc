"""Exports a trained model to ONNX, one file per graph, and checks each in ONNX Runtime.

    python export/to_onnx.py                                   # the package's parser
    python export/to_onnx.py --model runs/language_modeling --graph parser --quantize dynamic

The files take any batch size and length. Each is compared with Keras before it is saved.
`keras-onlstm export onnx` does the same.
"""

from keras_onlstm.command_line import export
from keras_onlstm.utils.console import ArgumentParser, report


def parse_arguments():
    description = "Export a trained model to ONNX."
    parser = ArgumentParser(prog="to_onnx.py", description=description)
    export.add_format(parser, "onnx")
    return parser, parser.parse_args()


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: export.run(options))
