"""The command `keras-onlstm`, with a module for each subcommand.

A module has `HELP`, `EXAMPLES` (command lines that `--help` shows), `add_arguments(parser)` and
`run(options)`. If it writes files, their path is `--output`. Only `run` imports slow modules.
"""

import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Sequence

from keras_onlstm.command_line import compact, evaluate, export, generate, parse, score, train
from keras_onlstm.utils.console import ArgumentParser, report
from keras_onlstm.version import __version__

__all__ = ["main"]

_COMMANDS = {
    "parse": parse,
    "train": train,
    "evaluate": evaluate,
    "export": export,
    "generate": generate,
    "score": score,
    "compact": compact,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command line; `None`: the arguments of the process.

    Errors of the user print one line and exit with status 2.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parser = ArgumentParser(
        prog="keras-onlstm",
        description="Language models with ordered neurons, and the trees that they find.",
        epilog=_example_list([module.EXAMPLES[0] for module in _COMMANDS.values()]),
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    subparsers = parser.add_subparsers(dest="command")
    for name, module in _COMMANDS.items():
        subparser = subparsers.add_parser(
            name,
            help=module.HELP,
            description=f"{module.HELP[0].upper()}{module.HELP[1:]}.",
            epilog=_example_list(module.EXAMPLES),
            formatter_class=RawDescriptionHelpFormatter,
        )
        subparser.set_defaults(parser=subparser)
        if module is train:  # whose options depend on the kind of model
            train.add_arguments(subparser, arguments if arguments[:1] == ["train"] else [])
        else:
            module.add_arguments(subparser)
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return
    report(parser, lambda: _COMMANDS[options.command].run(options))


def _example_list(examples):
    return "\n".join(["examples:", *(f"  {example}" for example in examples)])
