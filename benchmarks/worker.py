"""One backend's process: builds what it is told to and times a call whenever it is asked.

Requests come as JSON lines on standard input, answers leave as JSON lines on what was standard
output; whatever libraries print goes to standard error.
"""

import ctypes
import gc
import importlib
import json
import os
import platform
import sys
import time
from importlib import metadata
from pathlib import Path

PACKAGES = ("keras", "numpy", "tensorflow", "jax", "jaxlib", "torch")


def resident():
    """Megabytes that the process holds now and held at the most: (now, peak)."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return [int(status[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM")]


class Worker:
    def __init__(self, backend):
        self.timed = importlib.import_module(f"timed_{backend}")
        self.functions = {}

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

    def build(self, name, configuration, dtype, quick):
        import configurations

        chosen = configurations.get(configuration, quick)
        self.functions = {}
        gc.collect()
        self.functions = self.timed.build(name, chosen, dtype)

    def keep(self, key):
        """Keeps what was built under a key, so that several take turns."""
        setattr(self, f"kept_{key}", self.functions)

    def time(self, key, measure):
        """Seconds of one call, after one that is not timed."""
        function = getattr(self, f"kept_{key}")[measure]
        function()
        start = time.perf_counter()
        function()
        return time.perf_counter() - start

    def first(self, key, measure):
        start = time.perf_counter()
        getattr(self, f"kept_{key}")[measure]()
        return time.perf_counter() - start

    def memory(self, measure):
        """Megabytes at the peak of a call, above what is held between calls."""
        function = self.functions[measure]
        on_device = self.timed.device_bytes()
        function()  # compiles
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # what was freed goes back, or it would count as held
        before = resident()[0]
        Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
        for _ in range(3):
            function()
        if on_device is not None:
            return (self.timed.device_bytes()[1] - on_device[0]) / 2**20
        return resident()[1] - before

    def rates(self, dtype):
        return self.timed.rates(dtype)


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.path.insert(0, str(Path(__file__).parent))
    worker = Worker(os.environ["KERAS_BACKEND"])
    for line in sys.stdin:
        request, *arguments = json.loads(line)
        try:
            answer = {"result": getattr(worker, request)(*arguments)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
