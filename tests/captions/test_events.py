"""What an update may hold, and the order in which updates may come."""

from __future__ import annotations

from typing import Any

import pytest

from redraft.captions.events import Order, Update
from redraft.errors import InputError


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"text": None}, "text must be a string of whole characters, not null"),
        ({"text": b"Hello"}, "text must be a string of whole characters, not \"b'Hello'\""),
        ({"text": "a \ud800"}, r'text must be a string of whole characters, not "a \ud800"'),
        ({"utterance": ""}, 'utterance must be a non-empty string, not ""'),
        ({"utterance": 1}, "utterance must be a non-empty string, not 1"),
        ({"utterance": "\udfff"}, r'utterance must be a non-empty string, not "\udfff"'),
        ({"seq": -1}, "seq must be a whole number of 0 or more, not -1"),
        ({"seq": True}, "seq must be a whole number of 0 or more, not true"),
        ({"seq": 1.0}, "seq must be a whole number of 0 or more, not 1.0"),
        ({"final": 1}, "final must be true or false, not 1"),
        ({"time": float("nan")}, "time must be a finite number of seconds, 0 or more, or null, not NaN"),
        ({"time": float("inf")}, "time must be a finite number of seconds, 0 or more, or null, not Infinity"),
        ({"time": -0.5}, "time must be a finite number of seconds, 0 or more, or null, not -0.5"),
        ({"speaker": "a\nb"}, 'speaker must be a name of 1 to 100 characters on one line, or null, not "a\\nb"'),
        ({"time": "1"}, 'time must be a finite number of seconds, 0 or more, or null, not "1"'),
    ],
)
def test_value_that_is_not_allowed_is_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        Update(**{"utterance": "1", "seq": 0, "text": "Hello", **fields})
    assert str(raised.value) == message


def test_what_is_allowed() -> None:
    assert Update("1", 0, "", time=0).time == 0
    assert Update("1", 0, "\x00 日本", True, 1.5).final


def test_updates_come_in_order() -> None:
    order = Order()
    order.accept(Update("a", 3, "x"))
    order.accept(Update("b", 0, "x"))
    for seq in (3, 2):
        with pytest.raises(InputError) as found:
            order.accept(Update("a", seq, "x"))
        assert str(found.value) == f"seq of utterance 'a' must be greater than its last one, 3, not {seq}"
    order.accept(Update("a", 4, "x", final=True))
    with pytest.raises(InputError, match="utterance 'a' is final already: a new utterance needs a new name"):
        order.accept(Update("a", 5, "x"))
    order.accept(Update("b", 1, "x"))
