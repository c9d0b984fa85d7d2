from __future__ import annotations

import contextlib
import copy
import io
import json
import logging
import pickle
import pickletools
from collections.abc import Callable
from datetime import date

import numpy as np
import pytest

from turnstile.counting.exact import ExactTable

CANARY = 918273645


@pytest.fixture
def table() -> ExactTable:
    return ExactTable("on_time", "count", date(2016, 7, 25), np.array([CANARY, 3, 0]))


def _to_xcom(value: object) -> str:
    from airflow.sdk.serde import serialize

    return str(serialize(value))


def _to_dag_serialization(value: object) -> str:
    from airflow.serialization.serialized_objects import BaseSerialization

    return str(BaseSerialization.serialize(value))


def _to_xcom_json(value: object) -> str:
    from airflow.sdk.bases.xcom import BaseXCom

    return str(BaseXCom.serialize_value(value))


WAYS_OUT: dict[str, Callable[[object], object]] = {
    "pickle": pickle.dumps,
    "pickle of the oldest protocol": lambda value: pickle.dumps(value, 0),
    "pickle inside a list": lambda value: pickle.dumps([value]),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "json": json.dumps,
    "state": lambda value: value.__getstate__(),
    "reduce": lambda value: value.__reduce__(),
    "attributes": vars,
    "iteration": list,
    "length": len,
    "Airflow XCom": _to_xcom,
    "Airflow XCom through JSON": _to_xcom_json,
}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_an_exact_table_refuses_every_way_out(table: ExactTable, way: str) -> None:
    with pytest.raises((TypeError, AttributeError)) as error:
        WAYS_OUT[way](table)
    assert str(CANARY) not in str(error.value)


def pickletools_text(pickled: bytes) -> str:
    """Return what a pickle holds, as text."""
    text = io.StringIO()
    pickletools.dis(pickled, text)
    return text.getvalue()


REFUSED_FOR_THE_TYPE = ("pickle", "copy", "deepcopy", "json", "iteration", "Airflow XCom")


@pytest.mark.parametrize("way", REFUSED_FOR_THE_TYPE)
def test_the_same_ways_let_a_plain_list_out(way: str) -> None:
    # Negative control: it is the type that refuses above, not the way.
    out = WAYS_OUT[way]([CANARY])
    assert str(CANARY) in (pickletools_text(out) if isinstance(out, bytes) else str(out))


@pytest.mark.parametrize(
    "shown",
    [str, repr, "{}".format, "{:>80}".format, "%s".__mod__, "%r".__mod__, np.array2string],
    ids=["str", "repr", "format", "format with a width", "%s", "%r", "numpy"],
)
def test_an_exact_table_shows_its_name_and_length_only(
    table: ExactTable, shown: Callable[[object], str]
) -> None:
    text = shown(np.asarray(table) if shown is np.array2string else table)
    assert str(CANARY) not in text
    assert "on_time/count 2016-07-25, 3 cells" in text


def test_a_log_record_and_a_structured_log_hold_no_count(table: ExactTable) -> None:
    import structlog

    stream = io.StringIO()
    logger = logging.getLogger("turnstile.test_exact")
    handler = logging.StreamHandler(stream)
    logger.addHandler(handler)
    try:
        logger.warning("counted %s %r", table, [table])
    finally:
        logger.removeHandler(handler)
    rendered = structlog.processors.JSONRenderer()(None, "info", {"event": "x", "table": table})
    assert str(CANARY) not in stream.getvalue() + str(rendered)
    assert "on_time" in stream.getvalue()


def test_a_traceback_with_local_variables_holds_no_count(table: ExactTable) -> None:
    import rich.console
    import rich.traceback

    console = rich.console.Console(file=io.StringIO(), width=200)
    try:
        raise ValueError(table)
    except ValueError as error:
        rendered = rich.traceback.Traceback.from_exception(
            type(error), error, error.__traceback__, show_locals=True
        )
        with contextlib.redirect_stdout(io.StringIO()):
            console.print(rendered)
    text = console.file.getvalue()  # type: ignore[attr-defined] # it is the StringIO of above
    assert "on_time" in text
    # The source line of the canary is shown by its name.
    assert str(CANARY) not in text


def test_an_exact_table_of_the_dag_serializer_is_a_name_at_most(table: ExactTable) -> None:
    assert str(CANARY) not in _to_dag_serialization(table)
    assert str(CANARY) in _to_dag_serialization([CANARY])


def test_a_mechanism_gets_the_counts_and_cannot_change_them(table: ExactTable) -> None:
    counts = table.reveal_to_mechanism()
    assert counts.tolist() == [CANARY, 3, 0]
    with pytest.raises(ValueError, match="read-only"):
        counts[0] = 1


def test_a_table_keeps_its_counts_when_the_callers_array_changes() -> None:
    source = np.array([1, 2])
    table = ExactTable("on_time", "count", None, source)
    source[0] = 9
    assert table.reveal_to_mechanism().tolist() == [1, 2]


@pytest.mark.parametrize(
    "counts", [np.array([1.0]), np.array([[1]]), np.array([1], dtype=np.int32), [1]]
)
def test_counts_are_a_flat_vector_of_int64(counts: object) -> None:
    with pytest.raises(TypeError, match="flat vector of int64"):
        ExactTable("on_time", "count", None, counts)  # type: ignore[arg-type] # the point of it
