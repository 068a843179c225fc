"""Exports a trained model to TensorFlow Lite, one file a graph, and runs each in LiteRT.

    python export/to_tflite.py                                 the package's parser
    python export/to_tflite.py --model runs/language_modeling --graph step --quantize dynamic

A file is for one batch size and any length. Each is compared with Keras, at three lengths, before
it gets its name.
"""

from _common import export_files, new_parser, report


def parse_arguments():
    parser = new_parser("Exports ON-LSTM models to TensorFlow Lite.", "runs/tflite")
    parser.add_argument("--batch", type=int, default=1, metavar="N", help="default: 1")
    return parser, parser.parse_args()


def main(options):
    from keras_onlstm.exporting import to_tflite

    export_files(options, to_tflite, ".tflite", batch=options.batch)


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
