"""Registers layers and models with Keras as soon as Keras is there.

`import keras_onlstm` leaves Keras alone: exported parsers run where it is not installed, and where
it is, it takes seconds. Yet a saved model has to load after `import keras_onlstm`, whichever of the
two was imported first. So this waits for Keras, with a finder that sees the imports of Keras and of
this package: when both are at rest, what is to be registered is imported, and the finder is gone.

Where the backend is missing, Keras's import ends deep inside of it: here it gets one line instead.

It waits for the package too since `import keras_onlstm.onlstm.layer` imports Keras on its way: the
models cannot be imported before that layer is.
"""

import importlib
import sys

from keras_onlstm.utils.libraries import BACKENDS, backend_not_installed

__all__ = ["register_with_keras"]

MODULES = ("onlstm.cell", "onlstm.layer", "prpn", "models")  # those that register their classes


def register_with_keras() -> None:
    """Registers everything now, if Keras was imported, else when it is."""
    if sys.modules.get("keras") is not None:
        _register()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path = [_Finder(), *sys.meta_path]


def _register():
    for name in MODULES:
        importlib.import_module(f"keras_onlstm.{name}")


class _Finder:
    """Finds nothing by itself; what others find it gives a loader that tells when it is done."""

    def __init__(self):
        self.running = set()  # what is being imported, in whatever thread

    def find_spec(self, fullname, path=None, target=None):
        if fullname != "keras" and not fullname.startswith("keras_onlstm."):
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find and find(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, self)
                return spec
        return None

    def execute(self, loader, module):
        name = module.__name__
        self.running.add(name)
        try:
            loader.exec_module(module)
        except ImportError as error:
            missing = (error.name or "").partition(".")[0]
            if name != "keras" or missing not in BACKENDS:
                raise
            raise backend_not_installed(missing, error) from None
        finally:
            self.running.discard(name)
        if not self.running and sys.modules.get("keras") is not None and self in sys.meta_path:
            # A new list: another thread may be walking along the old one.
            sys.meta_path = [finder for finder in sys.meta_path if finder is not self]
            _register()


class _Loader:
    """A loader that stays in place until the module is executed."""

    def __init__(self, loader, finder):
        self._loader, self._finder = loader, finder

    def __getattr__(self, name):  # what tools ask of a loader: get_source, get_data, ...
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        self._finder.execute(self._loader, module)
