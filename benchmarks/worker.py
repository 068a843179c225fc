"""Worker process of one backend, which builds implementations and times calls on request.

It reads requests as JSON lines from standard input and writes answers as JSON lines to standard
output. What libraries print is redirected to standard error.
"""

import ctypes
import gc
import importlib
import json
import os
import platform
import statistics
import sys
import time
from importlib import metadata
from pathlib import Path

import configurations

PACKAGES = ("keras", "numpy", "tensorflow", "jax", "jaxlib", "torch")


def resident_memory():
    """Current and peak memory of the process in megabytes."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return [int(status[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM")]


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


class Worker:
    def __init__(self, backend):
        self.timed = importlib.import_module(f"timed_{backend}")
        self.built = {}

    def describe(self):
        versions = {}
        for package in PACKAGES:
            try:
                versions[package] = metadata.version(package)
            except metadata.PackageNotFoundError:
                continue
        return {
            "python": platform.python_version(),
            "versions": versions,
            "device": self.timed.device(),
            "threads": len(os.sched_getaffinity(0)),
        }

    def build(self, key, name, configuration, dtype, quick):
        """Builds an implementation and stores it under a key, so that several can take turns."""
        self.built[key] = self.timed.build(name, configurations.get(configuration, quick), dtype)

    def time(self, key, measure):
        """Seconds of a call, after a warm-up call."""
        function = self.built[key][measure]
        function()
        return seconds(function)

    def first(self, key, measure):
        return seconds(self.built[key][measure])

    def memory(self, key, measure):
        """Peak megabytes of a call, minus those in use between calls."""
        function = self.built[key][measure]
        on_device = self.timed.device_bytes()
        function()  # compiles
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # returns freed memory, which would count as used
        before = resident_memory()[0]
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak
        for _ in range(3):
            function()
        if on_device is not None:
            return (self.timed.device_bytes()[1] - on_device[0]) / 2**20
        return resident_memory()[1] - before

    def rates(self, dtype):
        """Operations per second of a large matrix product and bytes per second of a copy."""
        rates = []
        for function, amount in self.timed.rates(dtype):
            function()
            rates.append(amount / statistics.median(seconds(function) for _ in range(9)))
        return rates


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # standard output becomes standard error
    worker = Worker(os.environ["KERAS_BACKEND"])
    for line in sys.stdin:
        request, *arguments = json.loads(line)
        try:
            answer = {"result": getattr(worker, request)(*arguments)}
        except Exception as error:  # run.py reports it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
