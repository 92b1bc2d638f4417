"""Labels that a model was made for, and those of a feed."""

from types import SimpleNamespace

import pytest

import batchwright
from batchwright import _labels
from batchwright.torch import BatchDataset


def feed_of(**fields):
    made = {name: SimpleNamespace(name=name, categories=categories)
            for name, categories in fields.items()}
    return SimpleNamespace(name="valid", fields=tuple(made.values()), field=made.__getitem__)


@pytest.mark.parametrize("wanted", [["en", "it"], ("en", "it", "ru"), {"label": ["en", "it"]}])
def test_the_same_labels_or_the_first_of_them_are_taken(wanted):
    _labels.check(feed_of(features=None, label=("en", "it")), wanted)


@pytest.mark.parametrize("found, said", [
    (("it", "ru"), 'feed "valid", field "label": label 0 is "it", not "en"; it has it, ru; wanted: '
                   "en, it"),
    (("en", "it", "ru"), '3 labels, of which 2 are wanted; label 2 is "ru"'),
    (None, "has no labels; wanted: en, it"),
])
def test_other_labels_are_refused(found, said):
    with pytest.raises(batchwright.SchemaMismatchError) as refused:
        _labels.check(feed_of(label=found), {"label": ["en", "it"]})
    assert said in str(refused.value)


def test_a_list_is_for_one_field():
    with pytest.raises(batchwright.InvalidArgumentError, match="give a dict of lists by field"):
        _labels.check(feed_of(label=("en",), speaker=("ann",)), ["en"])
    with pytest.raises(batchwright.InvalidArgumentError, match="a list of names"):
        _labels.check(feed_of(label=("en",)), "en")


def test_a_dataset_demands_its_labels(daemon):
    with BatchDataset(daemon.endpoint, labels=["even", "odd"]) as dataset:
        assert dataset.feed.field("label").categories == ("even", "odd")
    with pytest.raises(batchwright.SchemaMismatchError, match='label 0 is "even", not "odd"'):
        BatchDataset(daemon.endpoint, labels=["odd", "even"])
