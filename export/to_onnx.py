"""Exports a trained model to ONNX, one file a graph, and runs each in ONNX Runtime.

    python export/to_onnx.py                                   the package's parser
    python export/to_onnx.py --model runs/language_modeling --graph parser --quantize dynamic

Any batch size and any length will do for the files. Each is compared with Keras, at two batch sizes
and three lengths, before it gets its name.
"""

from _common import export_files, new_parser, report

from keras_onlstm.exporting import OF_ONNX


def parse_arguments():
    parser = new_parser("Exports ON-LSTM models to ONNX.", "runs/onnx", OF_ONNX)
    add = parser.add_argument
    add("--opset", type=int, default=18, metavar="N", help="of ONNX's operators; default: 18")
    add("--provider", choices=("cpu", "cuda"), default="cpu", help="to check with; default: cpu")
    return parser, parser.parse_args()


def main(options):
    from keras_onlstm.exporting import to_onnx

    export_files(options, to_onnx, ".onnx", opset=options.opset, provider=options.provider)


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
