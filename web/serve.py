"""Serves the page, or the documentation with the page in it, on this machine.

python web/serve.py                 runs/web, at http://127.0.0.1:8000/
python web/serve.py DIR --port 0    another folder, at any free port
"""

import contextlib
import functools
import http.server
import threading
from pathlib import Path

from keras_onlstm.utils.console import ArgumentParser, report


class _Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {
        ".mjs": "text/javascript"
    }

    def log_message(self, *arguments):
        pass


def server(directory, port=0):
    """An HTTP server for a folder, at 127.0.0.1.

    Raises:
        FileNotFoundError: if there is no page in the folder.
        OSError: if the port is taken.
    """
    if not Path(directory, "index.html").is_file():
        raise FileNotFoundError(
            f"{directory}: holds no page. make web builds it, make docs with the documentation."
        )
    handler = functools.partial(_Quiet, directory=directory)
    try:
        return http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise OSError(
            f"--port {port}: cannot be had ({error.strerror}). --port 0 takes a free one."
        ) from error


@contextlib.contextmanager
def serving(directory):
    """Serves a folder in a thread; gives the address."""
    with server(directory) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()
        thread.join()


def parse_arguments():
    parser = ArgumentParser(prog=Path(__file__).name, description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("directory", nargs="?", metavar="DIR", default="runs/web", help="default: runs/web")
    add("--port", type=int, default=8000, help="default: 8000")
    return parser, parser.parse_args()


def main(options):
    with server(options.directory, options.port) as running:
        print(f"http://127.0.0.1:{running.server_port}/ until Ctrl+C", flush=True)
        running.serve_forever()


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
