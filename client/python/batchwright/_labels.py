"""The meaning of class numbers in a feed, compared with the one that a model was made for."""

from __future__ import annotations

from typing import Any, Mapping, Sequence, Union

from .errors import InvalidArgumentError, SchemaMismatchError

Labels = Union[Sequence[str], Mapping[str, Sequence[str]]]


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def check(feed: Any, wanted: Labels) -> None:
    """The names of each field named in `wanted`, or of the feed's only field that has some, must be
    those: the same ones, or the first of them, since a part of the data may lack the last classes.

    Errors: SchemaMismatchError, with the first name that differs; NotFoundError: no such field;
    InvalidArgumentError: a list without field names, and several fields that have names."""
    if isinstance(wanted, str):
        raise InvalidArgumentError(f'labels is "{wanted}"; allowed: a list of names, or a dict of '
                                   "such lists by field")
    if not isinstance(wanted, Mapping):
        fields = [each.name for each in feed.fields if each.categories]
        if len(fields) != 1:
            raise InvalidArgumentError(
                f'feed "{feed.name}" has {len(fields)} fields with labels ({", ".join(fields)}); '
                "give a dict of lists by field")
        wanted = {fields[0]: wanted}
    for name, names in wanted.items():
        _check_field(feed, name, list(names))


def _check_field(feed: Any, name: str, wanted: Sequence[str]) -> None:
    found = feed.field(name).categories or ()
    where = f'feed "{feed.name}", field "{name}": '
    if not found:
        raise SchemaMismatchError(f"{where}it has no labels; wanted: {_shown(wanted)}")
    for number, (one, other) in enumerate(zip(found, wanted)):
        if one != other:
            raise SchemaMismatchError(f'{where}label {number} is "{one}", not "{other}"; '
                                      f"it has {_shown(found)}; wanted: {_shown(wanted)}")
    if len(found) > len(wanted):
        raise SchemaMismatchError(f"{where}{len(found)} labels, of which {len(wanted)} are wanted; "
                                  f'label {len(wanted)} is "{found[len(wanted)]}"')
