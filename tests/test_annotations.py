"""Every public function and method says what it takes and what it returns."""

import ast
import configparser

import pytest

from package import MODULES, PACKAGE, ROOT

pytestmark = pytest.mark.keras_free


def _is_public(name):
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def _functions(body, prefix="", in_class=False):
    """(name, node, whether it gets self or cls) of what is public; nothing local is."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_public(node.name):
            decorators = {getattr(one, "id", None) for one in node.decorator_list}
            yield prefix + node.name, node, in_class and "staticmethod" not in decorators
        elif isinstance(node, ast.ClassDef) and _is_public(node.name):
            yield from _functions(node.body, f"{prefix}{node.name}.", in_class=True)
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from _functions(node.body, prefix, in_class)
            yield from _functions(getattr(node, "orelse", []), prefix, in_class)


def unannotated(source):
    """What lacks an annotation in a module: messages."""
    found = []
    for name, node, bound in _functions(ast.parse(source).body):
        arguments = node.args
        named = [*arguments.posonlyargs, *arguments.args][bound:]
        named += [*arguments.kwonlyargs, *filter(None, (arguments.vararg, arguments.kwarg))]
        found += [f"{name}: {one.arg}" for one in named if one.annotation is None]
        if node.returns is None:
            found.append(f"{name}: what it returns")
    return found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f(x, *, y: int): ...", ["f: x", "f: what it returns"]),
        ("def f(*args, **kwargs) -> None: ...", ["f: args", "f: kwargs"]),
        ("async def f(x) -> None: ...", ["f: x"]),
        ("class C:\n def f(self, x) -> None: ...", ["C.f: x"]),
        ("class C:\n def __init__(self, x: int): ...", ["C.__init__: what it returns"]),
        ("class C:\n @property\n def f(self): ...", ["C.f: what it returns"]),
        ("class C:\n @staticmethod\n def f(x) -> None: ...", ["C.f: x"]),
        ("class C:\n @classmethod\n def f(cls, x) -> None: ...", ["C.f: x"]),
        ("class C:\n class D:\n  def f(self, x) -> None: ...", ["C.D.f: x"]),
        ("if True:\n def f(x) -> None: ...", ["f: x"]),
    ],
)
def test_what_lacks_is_found(source, found):
    assert unannotated(source) == found


@pytest.mark.parametrize(
    "source",
    [
        "def f(x: int, *args: int, y: int = 0, **kwargs: int) -> None: ...",
        "class C:\n def f(self) -> None: ...\n @classmethod\n def g(cls) -> None: ...",
        "def _private(x): ...",
        "class _Private:\n def f(self, x): ...",
        "def f() -> None:\n def local(x): ...",
    ],
)
def test_what_need_not_be_annotated_is_left_out(source):
    assert unannotated(source) == []


@pytest.mark.parametrize("path", MODULES)
def test_public_functions_are_annotated(path):
    found = unannotated((PACKAGE / path).read_text(encoding="utf-8"))
    assert not found, "\n".join(found)


def test_the_distribution_declares_its_types():
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    assert "py.typed" in settings["options.package_data"]["keras_onlstm"].split()
    assert (PACKAGE / "py.typed").is_file()
