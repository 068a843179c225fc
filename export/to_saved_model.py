"""Exports a trained model to a SavedModel whose endpoints are its graphs, and runs each.

    python export/to_saved_model.py                            the package's parser
    python export/to_saved_model.py --model runs/logic_inference --output runs/served

Any batch size and any length will do. Every endpoint is compared with Keras, at two batch sizes and
three lengths, before the SavedModel takes its place in --output, under the model's name.
"""

from _common import export_each, new_parser, report


def parse_arguments():
    parser = new_parser("Exports ON-LSTM models to SavedModels.", "runs/saved_model", ())
    return parser, parser.parse_args()


def main(options):
    from keras_onlstm.exporting import to_saved_model

    def export(model, directory, graphs, **known):
        yield to_saved_model(
            model, directory / model.name, graphs, check=not options.no_check, **known
        )

    export_each(options, export)


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
