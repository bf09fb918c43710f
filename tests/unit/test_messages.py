"""What the judge and the student's process say to each other: each kind arrives, and anything else is refused."""

from dataclasses import fields
from typing import Any, get_args

import pytest
import torch

from autograder.inside import messages
from autograder.inside.messages import (
    Answer,
    Call,
    Missing,
    Names,
    Ran,
    ReadNames,
    Request,
    Run,
    Seen,
    Unsendable,
)  # fmt: skip
from course_utils.testing import Observation, wire

REQUESTS: list[Request] = [
    Run("x = 1\n"),
    ReadNames("def f(:"),
    Call("f", (1, [2.5, None], "λ"), {"eps": 1e-6}),
    Call("f", (), {}, "def probe(student): ..."),
]
ANSWERS: list[Answer] = [
    Ran("ValueError: no", "printed\n"),
    Names(["f"], ["torch", "x"]),
    Names([], []),
    Seen(Observation("f(1)", 2, shares=[0], mutated=["x"], printed="hi")),
    Missing("f"),
    Unsendable("a whole number with too many digits"),
]


def arrived(message: Request | Answer) -> Any:
    return wire.unpack(wire.pack(messages.plain(message)))


@pytest.mark.parametrize("request_", REQUESTS, ids=repr)
def test_a_request_arrives_as_it_was_sent(request_: Request) -> None:
    assert messages.request(arrived(request_)) == request_


@pytest.mark.parametrize("answer", ANSWERS, ids=repr)
def test_an_answer_arrives_as_it_was_sent(answer: Answer) -> None:
    assert messages.answer(arrived(answer)) == answer


def test_texts_that_the_judge_keeps_are_cut() -> None:
    text = "x" * 10**6
    seen = Seen(Observation("f(x)", 1, error=text, message=text))
    for answer in (Ran(text, text), Missing(text), Unsendable(text), seen):
        assert len(repr(messages.answer(arrived(answer)))) < 2 * messages.PRINTED, type(answer)


def test_tensors_in_a_call_and_in_an_observation_arrive() -> None:
    x = torch.arange(6.0).view(2, 3)
    call = messages.request(arrived(Call("f", (x.T,), {"out": x})))
    assert isinstance(call, Call) and torch.equal(call.args[0], x.T) and torch.equal(call.kwargs["out"], x)
    assert call.args[0].untyped_storage().data_ptr() == call.kwargs["out"].untyped_storage().data_ptr()
    seen = messages.answer(arrived(Seen(Observation("f(x)", x))))
    assert isinstance(seen, Seen) and torch.equal(seen.observation.value, x)


def test_every_kind_of_message_is_tried_above() -> None:
    assert {type(message) for message in REQUESTS} == set(get_args(Request))
    assert {type(message) for message in ANSWERS} == set(get_args(Answer))


@pytest.mark.parametrize("answer", ANSWERS, ids=repr)
def test_an_answer_is_refused_as_a_request(answer: Answer) -> None:
    with pytest.raises(wire.WireError):
        messages.request(arrived(answer))


@pytest.mark.parametrize("request_", REQUESTS, ids=repr)
def test_a_request_is_refused_as_an_answer(request_: Request) -> None:
    with pytest.raises(wire.WireError):
        messages.answer(arrived(request_))


SEEN = Observation("f(1)", 2)
FALSE = {
    "nothing": None,
    "text": "Ran",
    "a list": ["Ran", "", ""],
    "an observation alone": SEEN,
    "no kind": {},
    "two kinds": {"Ran": ["", ""], "Missing": ["f"]},
    "an unknown kind": {"Mark": ["f", 100.0, 100.0, "", None]},
    "a kind in lower case": {"ran": ["", ""]},
    "the old form": {"seen": SEEN},
    "a verdict": {"points": 100, "passed": True},
    "a number for a kind": {3: ["", ""]},
    "a tuple for a kind": {("Ran",): ["", ""]},
    "None for a kind": {None: []},
    "fields as a tuple": {"Ran": ("", "")},
    "fields as a dict": {"Ran": {"error": "", "printed": ""}},
    "no fields": {"Ran": None},
}


@pytest.mark.parametrize("name", FALSE)
def test_a_value_that_is_not_in_the_form_of_a_message_is_refused(name: str) -> None:
    for read in (messages.answer, messages.request):
        with pytest.raises(wire.WireError):
            read(FALSE[name])
        with pytest.raises(wire.WireError):
            read(wire.unpack(wire.pack(FALSE[name])))


@pytest.mark.parametrize("message", [*REQUESTS, *ANSWERS], ids=repr)
def test_a_field_too_many_or_too_few_or_of_another_type_is_refused(message: Request | Answer) -> None:
    read = messages.request if isinstance(message, get_args(Request)) else messages.answer
    ((name, content),) = messages.plain(message).items()
    assert read({name: list(content)}) == message
    false = [[*content, ""], [*content, None], content[:-1], []]
    others = (None, True, 3, 2.5, "text", b"bytes", ["list"], ("tuple",), {"a": "dict"}, {"set"}, SEEN, torch.ones(1))
    for place, field in enumerate(fields(message)):
        given = content[place]
        false += [
            [*content[:place], other, *content[place + 1 :]] for other in others if type(other) is not type(given)
        ]
        assert len(false) > 10, field
    for each in false:
        with pytest.raises(wire.WireError):
            read({name: each})


@pytest.mark.parametrize("odd", [None, 1, b"f", ["f"], torch.float32])
def test_names_must_be_text(odd: object) -> None:
    for names in ([[odd], []], [["f"], ["g", odd]]):
        with pytest.raises(wire.WireError):
            messages.answer({"Names": names})


class Text(str):
    pass


def test_a_subclass_of_a_fields_type_is_refused() -> None:
    """Nothing that comes through the encoding is one; what a request is made of here must not be one either."""
    for value in ({"Missing": [Text("f")]}, {Text("Missing"): ["f"]}):
        with pytest.raises(wire.WireError):
            messages.answer(value)
