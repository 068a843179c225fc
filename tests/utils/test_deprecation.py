"""Former names: they work and warn with the new name."""

import types

import pytest

from keras_onlstm.runs.config import option
from keras_onlstm.utils import validation


def test_renamed_name_of_a_module():
    getattr_ = validation.module_getattr(
        "keras_onlstm.version", {"old": "__version__", "there": "keras_onlstm.utils.files:LOCK"}
    )
    with pytest.warns(DeprecationWarning, match="Use .*__version__"):
        assert getattr_("old") == "0.1.0"
    with pytest.warns(DeprecationWarning, match=r"Use keras_onlstm.utils.files.LOCK\."):
        assert getattr_("there") == ".lock"
    with pytest.raises(AttributeError, match=r"'keras_onlstm.version' has no attribute 'other'"):
        getattr_("other")


def test_renamed_attribute():
    class Reader:
        old = validation.renamed_attribute("old", "new")

        def new(self, x, y=0):
            return x, y

    with pytest.warns(DeprecationWarning, match=r"Reader.old is deprecated. Use new\.") as caught:
        assert Reader().old(1, y=2) == (1, 2)
    assert caught[0].filename == __file__


def test_renamed_arguments():
    with pytest.warns(DeprecationWarning, match=r"least= is deprecated. Use minimum=\.") as caught:
        former = option(3, "help", "group", least=1)
    assert caught[0].filename == __file__
    assert former.metadata == option(3, "help", "group", minimum=1).metadata
    assert isinstance(option, types.FunctionType) and option.__name__ == "option"
