"""The names others may rely on."""

import inspect
from typing import Any

import msgspec
import pytest

import difflens
from difflens import (
    ab_results,
    comparisons,
    flow_results,
    gradient_results,
    network_results,
    records,
    regression_results,
    runs,
    snapshots,
    testing,
    weight_results,
)


def test_all_is_sorted_and_equal_to_what_is_public():
    assert difflens.__all__ == sorted(difflens.__all__)
    assert set(difflens.__all__) == set(difflens._HOMES)


@pytest.mark.parametrize("name", difflens.__all__)
def test_every_public_name_can_be_fetched_and_is_documented(name):
    assert (getattr(difflens, name).__doc__ or "").strip()


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'dif'"):
        difflens.dif  # noqa: B018


def test_the_type_checker_sees_the_names_that_are_fetched_late():
    text = inspect.getsource(difflens)

    for name, home in difflens._HOMES.items():
        assert f"from .{home} import {name} as {name}" in text


def test_what_testing_exports_is_there():
    assert all(hasattr(testing, name) for name in testing.__all__)


RECORDS = sorted(
    {
        each
        for home in (
            records,
            snapshots,
            comparisons,
            ab_results,
            regression_results,
            runs,
            weight_results,
            gradient_results,
            network_results,
            flow_results,
        )
        for each in vars(home).values()
        if isinstance(each, type) and issubclass(each, records.Record) and each.__struct_fields__
    },
    key=lambda each: each.__name__,
)


def made(kind: Any) -> Any:
    """Make a value of a type, plain and small, from the type alone."""
    if isinstance(kind, msgspec.inspect.StructType):
        fields = {
            each.name: _TOLD.get((kind.cls.__name__, each.name)) or made(each.type)
            for each in kind.fields
            if each.required
        }
        return kind.cls(**fields)
    if isinstance(kind, msgspec.inspect.UnionType):
        return made(kind.types[0])
    if isinstance(kind, msgspec.inspect.LiteralType):
        return kind.values[0]
    if isinstance(kind, msgspec.inspect.EnumType):
        return next(iter(kind.cls))
    return _PLAIN[type(kind)]


_PLAIN: dict[type, Any] = {
    msgspec.inspect.AnyType: 1,
    msgspec.inspect.BoolType: True,
    msgspec.inspect.BytesType: b"bytes",
    msgspec.inspect.DictType: {},
    msgspec.inspect.FloatType: 0.5,
    msgspec.inspect.IntType: 3,
    msgspec.inspect.NoneType: None,
    msgspec.inspect.StrType: "text",
    msgspec.inspect.VarTupleType: (),
}


_TOLD = {("ABTestConfig", "model_b"): "another"}  # fields that the others rule a value out for


def defaults(record: Any) -> set[str]:
    """Name the fields that have a default, which some records do not write down."""
    return {each.name for each in msgspec.structs.fields(record) if not each.required}


@pytest.mark.parametrize("record", RECORDS, ids=lambda each: each.__name__)
def test_every_record_turns_into_plain_data_and_back(record):
    one = made(msgspec.inspect.type_info(record))

    plain = one.to_dict()

    left_out = set() if not record.__struct_config__.omit_defaults else defaults(record)
    assert set(plain) | left_out == set(record.__struct_encode_fields__)
    assert one == msgspec.convert(plain, record)
    assert one == msgspec.json.decode(msgspec.json.encode(one), type=record)


@pytest.mark.parametrize("record", RECORDS, ids=lambda each: each.__name__)
def test_every_record_is_frozen_and_says_what_it_is(record):
    one = made(msgspec.inspect.type_info(record))

    assert record.__doc__
    with pytest.raises(AttributeError):
        setattr(one, record.__struct_fields__[0], None)
