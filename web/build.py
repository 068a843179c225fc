"""Builds the page that parses in the browser: one folder of static files.

    npm install --prefix export/javascript
    python web/build.py                                 into runs/web
    python web/serve.py                                 at http://127.0.0.1:8000/

The models of the package, or of a file of `keras-onlstm compact`, are exported one by one, so that
the first parses before the others are there. What is large is packed with gzip and named after its
content. A PRPN, `models/prpn.onnx`, is the second choice.
"""

import gzip
import hashlib
import json
import tempfile
from pathlib import Path

from keras_onlstm.loading import SHIPPED, load_model, select_model
from keras_onlstm.utils.console import ArgumentParser, report
from keras_onlstm.utils.files import replacing

HERE = Path(__file__).resolve().parent
RUNTIME = HERE.parent / "export" / "javascript" / "node_modules" / "onnxruntime-web"
MODULE, WASM = "ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm"
# What a browser gets of this folder; tests and Python files stay here.
PAGE = ("*.html", "*.css", "*.js", "*.mjs", "*.svg", "parsing/*.mjs")
FILES = "files.js"  # which the build writes
PRPN = HERE / "models" / "prpn.onnx"


def parsers(path, check=True):
    """The language models of a file, each exported as a parser: pairs as of `stored_parser`."""
    from keras_onlstm.exporting import to_onnx

    model, about = load_model(path)
    for number in range(1, len(getattr(model, "models", [model])) + 1):
        one, of_one = select_model(path, model, about, number)
        with tempfile.TemporaryDirectory() as directory:
            target = Path(directory) / "parser.onnx"
            to_onnx(one, target, "parser", quantize="weights", check=check, metadata=of_one)
            yield stored_parser(target)


def stored_parser(path):
    """A parser that has been exported, and the bytes of its file."""
    from keras_onlstm import runtime

    return runtime.ExportedModel(runtime.load(path)), path.read_bytes()


def check_runtime():
    """Refuses to build where ONNX Runtime's JavaScript is not installed."""
    if not (RUNTIME / "dist" / WASM).is_file():
        raise FileNotFoundError(
            f"{RUNTIME}: onnxruntime-web is not installed. Run npm install in {RUNTIME.parents[1]}."
        )


def packed(output, folder, stem, content):
    """Writes a large file, and returns what the page has to know of it."""
    name = f"{stem}-{hashlib.sha256(content).hexdigest()[:12]}.gz"
    smaller = gzip.compress(content, 9, mtime=0)
    write(output / folder / name, smaller)
    return {"path": f"{folder}/{name}", "packed": len(smaller), "bytes": len(content)}


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def build(output, model=SHIPPED, check=True, documentation=None):
    """Builds the page.

    Args:
        output: directory; what else is in it stays, but for earlier models.
        model: path of a file of `keras-onlstm compact`.
        check: whether each export is compared with Keras.
        documentation: address that the page has a link to.

    Returns:
        Dictionary: what `files.js` says.
    """
    check_runtime()
    output = Path(output)
    found = {"onlstm": list(parsers(model, check)), "prpn": [stored_parser(PRPN)]}
    described = {}
    for name, models in found.items():
        described[name] = {
            "layers": min(model.num_layers for model, _ in models),
            "gates": models[0][0].gates,
            "models": [
                packed(output, "models", f"{name}-{number}.onnx", content)
                for number, (_, content) in enumerate(models, 1)
            ],
        }
    page = {
        path.relative_to(HERE).as_posix(): path.read_bytes()
        for pattern in PAGE
        for path in sorted(HERE.glob(pattern))
    }
    page["runtime/ort.mjs"] = (RUNTIME / "dist" / MODULE).read_bytes()
    page["runtime/ONNXRUNTIME.txt"] = _about_runtime()
    for name, content in page.items():
        write(output / name, content)
    runtime = packed(output, "runtime", "ort.wasm", (RUNTIME / "dist" / WASM).read_bytes())
    site = {
        "documentation": documentation,
        "page": ["./", FILES, *page],
        "runtime": runtime,
        "parsers": described,
    }
    known = hashlib.sha256(json.dumps(site).encode())
    for content in page.values():
        known.update(hashlib.sha256(content).digest())
    site = {"version": known.hexdigest()[:12], **site}
    text = f"// Written by {Path(__file__).name}.\nself.SITE = {json.dumps(site, indent=1)};\n"
    write(output / FILES, text.encode())
    _remove_earlier(output, {file["path"] for file in (runtime, *models_of(site))})
    return site


def models_of(site):
    """What `files.js` says of the models, in the order in which they are loaded."""
    return [file for parser in site["parsers"].values() for file in parser["models"]]


def _about_runtime():
    about = json.loads((RUNTIME / "package.json").read_text(encoding="utf-8"))
    lines = [f"{about['name']} {about['version']}", f"License: {about['license']}"]
    return "\n".join([*lines, about.get("homepage") or "https://onnxruntime.ai", ""]).encode()


def _remove_earlier(output, kept):
    for path in output.glob("*/*-????????????.gz"):
        if path.relative_to(output).as_posix() not in kept:
            path.unlink()


def main(options):
    model = Path(options.model or SHIPPED)
    site = build(options.output, model, not options.no_check, options.documentation)
    sizes = [file["packed"] for file in models_of(site)]
    print(f"{options.output}: {len(site['page'])} files of the page")
    print(f"  WebAssembly {site['runtime']['packed'] / 1e6:.2f} MB, packed")
    print(f"  models      {sum(sizes) / 1e6:.2f} MB, the first {sizes[0] / 1e6:.2f} MB, packed")
    print(f"To look at it: python web/serve.py {options.output}")


def parse_arguments():
    parser = ArgumentParser(prog=Path(__file__).name, description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--model", metavar="PATH", help="a file of keras-onlstm compact; default: the package's")
    add("--output", metavar="DIR", default="runs/web", help="default: runs/web")
    add("--documentation", metavar="URL", help="the page gets a link to it")
    add("--no-check", action="store_true", help="do not compare the models with Keras")
    return parser, parser.parse_args()


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
