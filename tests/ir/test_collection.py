"""Pausing the collector: it is left as it was found, nested, after an error and after a pipeline."""

import gc

import pytest

from irc.ir.collection import collection_paused
from irc.ir.model import Model
from irc.passes import parse_pipeline, run_pipeline


@pytest.fixture(params=[True, False], ids=["on", "off"])
def found(request):
    """The collector on or off before the work; on again after the test."""
    (gc.enable if request.param else gc.disable)()
    yield request.param
    gc.enable()


def test_nested_pauses_leave_it_as_it_was(found):
    with collection_paused():
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled() is found


def test_an_error_leaves_it_as_it_was(found):
    with pytest.raises(ZeroDivisionError), collection_paused():
        1 / 0
    assert gc.isenabled() is found


def test_a_pipeline_runs_without_it_and_leaves_it_as_it_was(found):
    seen = []
    run_pipeline(Model("m"), parse_pipeline("dce"), observe=lambda *_: seen.append(gc.isenabled()))
    assert seen == [False]
    assert gc.isenabled() is found
