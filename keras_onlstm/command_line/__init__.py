"""The command `keras-onlstm`, with a module for each subcommand.

A module has `HELP`, `EXAMPLES` (command lines that `--help` shows), `add_arguments(parser)` and
`run(options)`. It writes files to the path in `--output`. Only `run` imports slow modules.
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
    """Runs a command line; user errors print one line and exit with status 2.

    Args:
        arguments: list of strings; `None`: the arguments of the process.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parser = ArgumentParser(
        prog="keras-onlstm",
        description="Ordered neurons on the command line.",
        epilog=_shown([module.EXAMPLES[0] for module in _COMMANDS.values()]),
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command")
    for name, module in _COMMANDS.items():
        one = commands.add_parser(
            name,
            help=module.HELP,
            description=f"{name}: {module.HELP}",
            epilog=_shown(module.EXAMPLES),
            formatter_class=RawDescriptionHelpFormatter,
        )
        one.set_defaults(parser=one)
        if module is train:  # whose options depend on the kind of model
            train.add_arguments(one, arguments if arguments[:1] == ["train"] else [])
        else:
            module.add_arguments(one)
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return
    report(parser, lambda: _COMMANDS[options.command].run(options))


def _shown(examples):
    return "\n".join(["examples:", *(f"  {example}" for example in examples)])
