"""Builds the page that parses in the browser: a folder of static files.

    npm install --prefix export/javascript
    python web/build.py                                 # writes runs/web
    python web/serve.py                                 # serves it at http://127.0.0.1:8000/

The models of the package, or of a file of `keras-onlstm compact`, are exported to separate files,
so that the page can parse with the first one while the others are loading. Large files are
compressed with gzip, and their names contain a hash of the content. The page also offers a PRPN,
`models/prpn.onnx`.
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
# The files of this folder that are part of the page.
PAGE = ("*.html", "*.css", "*.js", "*.mjs", "*.svg", "parsing/*.mjs")
FILES = "files.js"  # written by the build
PRPN = HERE / "models" / "prpn.onnx"


def parsers(path, check=True):
    """Exports each language model of a file as a parser; yields results of `load_exported`."""
    from keras_onlstm.exporting import to_onnx

    model, about = load_model(path)
    for number in range(1, len(getattr(model, "models", [model])) + 1):
        single, single_metadata = select_model(path, model, about, number)
        with tempfile.TemporaryDirectory() as directory:
            target = Path(directory) / "parser.onnx"
            to_onnx(
                single, target, "parser", quantize="weights", check=check, metadata=single_metadata
            )
            yield load_exported(target)


def load_exported(path):
    """Loads an exported parser; returns it and the content of its file."""
    from keras_onlstm import runtime

    return runtime.ExportedModel(runtime.load(path)), path.read_bytes()


def check_runtime():
    """Raises an error if ONNX Runtime's JavaScript is not installed."""
    if not (RUNTIME / "dist" / WASM).is_file():
        raise FileNotFoundError(
            f"{RUNTIME}: onnxruntime-web is not installed. Run `npm install` in "
            f"{RUNTIME.parents[1]}."
        )


def write_compressed(output, folder, stem, content):
    """Compresses and writes a large file; returns its entry for `files.js`."""
    name = f"{stem}-{hashlib.sha256(content).hexdigest()[:12]}.gz"
    compressed = gzip.compress(content, 9, mtime=0)
    write(output / folder / name, compressed)
    return {"path": f"{folder}/{name}", "packed": len(compressed), "bytes": len(content)}


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def build(output, model=SHIPPED, check=True, documentation=None):
    """Builds the page.

    Args:
        output: directory. Models of earlier builds are removed, other files are kept.
        model: path of a file of `keras-onlstm compact`.
        check: whether to compare each export with Keras.
        documentation: address of the documentation, for a link; `None`: no link.

    Returns:
        Dictionary with the content of `files.js`.
    """
    check_runtime()
    output = Path(output)
    exported = {"onlstm": list(parsers(model, check)), "prpn": [load_exported(PRPN)]}
    entries = {}
    for name, models in exported.items():
        entries[name] = {
            "layers": min(model.num_layers for model, _ in models),
            "gates": models[0][0].gates,
            "models": [
                write_compressed(output, "models", f"{name}-{number}.onnx", content)
                for number, (_, content) in enumerate(models, 1)
            ],
        }
    page = {
        path.relative_to(HERE).as_posix(): path.read_bytes()
        for pattern in PAGE
        for path in sorted(HERE.glob(pattern))
    }
    page["runtime/ort.mjs"] = (RUNTIME / "dist" / MODULE).read_bytes()
    page["runtime/ONNXRUNTIME.txt"] = _runtime_notice()
    for name, content in page.items():
        write(output / name, content)
    wasm = (RUNTIME / "dist" / WASM).read_bytes()
    runtime = write_compressed(output, "runtime", "ort.wasm", wasm)
    site = {
        "documentation": documentation,
        "page": ["./", FILES, *page],
        "runtime": runtime,
        "parsers": entries,
    }
    digest = hashlib.sha256(json.dumps(site).encode())
    for content in page.values():
        digest.update(hashlib.sha256(content).digest())
    site = {"version": digest.hexdigest()[:12], **site}
    text = f"// Written by {Path(__file__).name}.\nself.SITE = {json.dumps(site, indent=1)};\n"
    write(output / FILES, text.encode())
    _remove_old_files(output, {file["path"] for file in (runtime, *models_of(site))})
    return site


def models_of(site):
    """The entries of the models in `files.js`, in the order in which they are loaded."""
    return [file for parser in site["parsers"].values() for file in parser["models"]]


def _runtime_notice():
    package = json.loads((RUNTIME / "package.json").read_text(encoding="utf-8"))
    lines = [f"{package['name']} {package['version']}", f"License: {package['license']}"]
    return "\n".join([*lines, package.get("homepage") or "https://onnxruntime.ai", ""]).encode()


def _remove_old_files(output, current):
    for path in output.glob("*/*-????????????.gz"):
        if path.relative_to(output).as_posix() not in current:
            path.unlink()


def main(options):
    model = Path(options.model or SHIPPED)
    site = build(options.output, model, not options.no_check, options.documentation)
    sizes = [file["packed"] for file in models_of(site)]
    print(f"{options.output}: {len(site['page'])} files, and compressed:")
    print(f"  WebAssembly {site['runtime']['packed'] / 1e6:.2f} MB")
    print(f"  models      {sum(sizes) / 1e6:.2f} MB, the first one {sizes[0] / 1e6:.2f} MB")
    print(f"To view the page, run: python web/serve.py {options.output}")


def parse_arguments():
    parser = ArgumentParser(prog=Path(__file__).name, description=__doc__.splitlines()[0])
    add = parser.add_argument
    # fmt: off
    add("--model", metavar="PATH",
        help="Model file of `keras-onlstm compact`. Default: the models of the package.")
    add("--output", metavar="DIR", default="runs/web", help="Output folder. (default: runs/web)")
    add("--documentation", metavar="URL", help="Add a link to the documentation at this address.")
    add("--no-check", action="store_true", help="Do not compare the exported models with Keras.")
    # fmt: on
    return parser, parser.parse_args()


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
