"""Compares the speed and memory of ONLSTM with those of other implementations.

    python benchmarks/run.py                                  # all backends and configurations
    python benchmarks/run.py --backends jax torch --dtypes float32 bfloat16     # on a GPU
    python benchmarks/run.py --quick --backends tensorflow    # tiny sizes, to check that it runs

Every backend has its own process, and only one computes at a time. In every round each
implementation makes a warm-up call and a timed call. Ratios compare times of the same round, so
that changes in the speed of the machine cancel out. Writes results.json, results.md and plots.
"""

import argparse
import datetime
import importlib.util
import json
import os
import platform
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import report
from configurations import CONFIGURATIONS, IMPLEMENTATIONS, MEMORY, get, implementations

HERE = Path(__file__).parent


class Backend:
    """A worker process and the communication with it."""

    def __init__(self, name):
        self.name = name
        environment = {**os.environ, "KERAS_BACKEND": name, "TF_CPP_MIN_LOG_LEVEL": "2"}
        paths = [str(HERE.parent), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if not os.environ.get("BENCH_VERBOSE") else None,
            env=environment,
            text=True,
        )

    def ask(self, *request):
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
            answer = json.loads(self.process.stdout.readline() or '{"error": "the process ended"}')
        except BrokenPipeError:
            answer = {"error": "the process ended"}
        if "error" in answer:
            raise RuntimeError(f"{self.name}, {' '.join(map(str, request))}: {answer['error']}")
        return answer["result"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def cpu_model():
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def log(text):
    print(text, file=sys.stderr, flush=True)


def time_configuration(backends, name, dtype, rounds, quick):
    """Seconds of every round: {backend: {implementation: {measure: [...], "first": {...}}}}."""
    configuration = get(name, quick)
    rounds = min(rounds, configuration.rounds or rounds)
    results, turns = {}, []
    for backend in backends:
        for implementation in implementations(backend.name, configuration):
            log(f"{name}, {dtype}: {backend.name}, {implementation}")
            key = f"{name}/{implementation}"
            backend.ask("build", key, implementation, name, dtype, quick)
            samples = {m: [] for m in configuration.measures}
            samples["first"] = {m: backend.ask("first", key, m) for m in configuration.measures}
            results.setdefault(backend.name, {})[implementation] = samples
            turns.append((backend, key, samples))
    for number in range(rounds):
        log(f"{name}, {dtype}: round {number + 1} of {rounds}")
        for backend, key, samples in turns:
            for measure in configuration.measures:
                samples[measure].append(backend.ask("time", key, measure))
    return results


def memory(configurations, names, quick):
    """Peak megabytes of training steps minus those in use between steps, in new processes."""
    results = {}
    for name in configurations:
        for backend_name in names:
            for implementation in implementations(backend_name, get(name, quick)):
                log(f"{name}, memory: {backend_name}, {implementation}")
                with Backend(backend_name) as backend:
                    backend.ask("build", name, implementation, name, "float32", quick)
                    megabytes = backend.ask("memory", name, "train")
                results.setdefault(name, {}).setdefault(backend_name, {})[implementation] = (
                    megabytes
                )
    return results


def measure(options):
    results = {
        "command": "python benchmarks/run.py " + " ".join(sys.argv[1:]),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": {"processor": cpu_model(), "system": platform.platform()},
        "quick": options.quick,
        "backends": {},
        "seconds": {},
        "rates": {},
    }
    for name in options.configurations:
        for dtype in options.dtypes:
            with ExitStack() as stack:
                backends = [stack.enter_context(Backend(backend)) for backend in options.backends]
                for backend in backends:
                    results["backends"][backend.name] = backend.ask("describe")
                timed = time_configuration(backends, name, dtype, options.rounds, options.quick)
                results["seconds"].setdefault(name, {})[dtype] = timed
                for backend in backends:
                    on_gpu = results["backends"][backend.name]["device"]
                    rates = results["rates"].setdefault(dtype, {})
                    if on_gpu and backend.name not in rates:
                        rates[backend.name] = backend.ask("rates", dtype)
    measured = [name for name in options.configurations if name in MEMORY]
    results["memory"] = memory(measured, options.backends, options.quick)
    return results


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    dtypes = ("float32", "bfloat16", "float16")
    # fmt: off
    add("--backends", nargs="+", choices=IMPLEMENTATIONS, default=list(IMPLEMENTATIONS),
        metavar="NAME", help="Backends: tensorflow, jax, torch. Default: all.")
    add("--configurations", nargs="+", choices=CONFIGURATIONS, default=list(CONFIGURATIONS),
        metavar="NAME", help=f"Sizes to measure: {', '.join(CONFIGURATIONS)}. Default: all.")
    add("--dtypes", nargs="+", choices=dtypes, default=["float32"],
        metavar="NAME", help=f"Compute dtypes: {', '.join(dtypes)}. (default: float32)")
    add("--rounds", type=int, default=9, metavar="N",
        help="Timed calls of each implementation. (default: 9)")
    add("--output", type=Path, default=Path("runs/benchmarks"), metavar="DIR",
        help="Folder for the results. (default: %(default)s)")
    add("--quick", action="store_true",
        help="Use tiny sizes, to check that the script works. The times are meaningless.")
    add("--report", type=Path, metavar="FILE",
        help="Write tables and plots of this results.json again, without measuring.")
    # fmt: on
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error(f"--rounds must be 1 or above, got {options.rounds}")
    if importlib.util.find_spec("matplotlib") is None:
        parser.error(
            "Matplotlib is not installed. It is needed for the plots: pip install matplotlib"
        )
    return options, parser


def main():
    options, parser = parse()
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        probe = options.output / ".probe"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        parser.error(f"--output {options.output}: {error.strerror}")
    if options.report:
        try:
            results = json.loads(options.report.read_text())
            report.check(results)
        except (OSError, ValueError) as error:
            parser.error(
                f"--report {options.report}: this is not a results.json of run.py ({error})"
            )
    else:
        for backend in options.backends:
            if importlib.util.find_spec(backend) is None:
                parser.error(f"{backend} is not installed: pip install {backend}")
        try:
            results = measure(options)
        except RuntimeError as error:
            parser.error(str(error))
        report.replace(options.output / "results.json", json.dumps(results, indent=1) + "\n")
    report.replace(options.output / "results.md", report.tables(results))
    report.plot(results, options.output)
    print(report.tables(results))


if __name__ == "__main__":
    main()
