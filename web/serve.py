"""Serves the page, or the documentation that includes it, on this machine.

python web/serve.py                 # runs/web at http://127.0.0.1:8000/
python web/serve.py DIR --port 0    # another folder at any free port
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
    """Makes an HTTP server for a folder at 127.0.0.1.

    Raises:
        FileNotFoundError: if the folder has no index.html.
        OSError: if the port is not free.
    """
    if not Path(directory, "index.html").is_file():
        raise FileNotFoundError(
            f"{directory}: index.html is missing. Build the page with `make web`, or the "
            "documentation and the page with `make docs`."
        )
    handler = functools.partial(_Quiet, directory=directory)
    try:
        return http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise OSError(
            f"--port {port}: cannot be used ({error.strerror}). Pass --port 0 for any free port."
        ) from error


@contextlib.contextmanager
def serving(directory):
    """Serves a folder in a thread; yields the address."""
    with server(directory) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()
        thread.join()


def parse_arguments():
    parser = ArgumentParser(prog=Path(__file__).name, description=__doc__.splitlines()[0])
    add = parser.add_argument
    add(
        "directory", nargs="?", metavar="DIR", default="runs/web",
        help="Folder to serve. (default: runs/web)",
    )  # fmt: skip
    add("--port", type=int, default=8000, metavar="N", help="Port. 0: any free. (default: 8000)")
    return parser, parser.parse_args()


def main(options):
    with server(options.directory, options.port) as running:
        print(f"Serving http://127.0.0.1:{running.server_port}/ (stop with Ctrl+C)", flush=True)
        running.serve_forever()


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
