"""Generated texts: the ids of greedy decoding by every exact method, whole lines, streamed in whole characters."""

from __future__ import annotations

import pytest

from redraft.captions.metadata import CHAT_KEY
from redraft.cli import main
from redraft.errors import ContextOverflow
from redraft.generator import Generator
from tests.fakes import RandomModel, greedy


class Model(RandomModel):
    """A model whose tokens are bytes; two of them are a character, and one is a line break."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__(seed, end_bias=-100)

    def token_bytes(self, token: int) -> bytes:
        return {3: b"\xc3", 4: b"\xa4", 5: b"\n"}.get(token, b"abcdefghijkl"[token : token + 1])


@pytest.mark.parametrize("method", ["ar", "pld", "jacobi", "gs-jacobi"])
def test_every_exact_method_writes_the_same(method: str) -> None:
    model, pieces = Model(), list[str]()
    made = Generator(model, method, {"max_tokens": 30}).generate("some words", pieces.append)
    assert list(made.output.tokens) == greedy(Model(), made.prompt, 30)
    expected = b"".join(map(model.token_bytes, made.output.tokens)).decode(errors="replace")
    assert made.text == "".join(pieces) == expected


def test_lines_go_on() -> None:
    texts = [Generator(Model(seed), options={"max_tokens": 40}).generate("x").text for seed in range(4)]
    assert any("\n" in text.strip() for text in texts)


def test_prompt_is_a_turn_unless_raw() -> None:
    model = Model()
    model.metadata = {CHAT_KEY: "{% for m in messages %}[{{ m.content }}]{% endfor %}"}
    turn, raw = (Generator(model, options={"max_tokens": 1}, raw=raw).generate("a b").prompt for raw in (False, True))
    assert len(turn) >= len(raw) and turn != raw


def test_prompt_without_room() -> None:
    model = Model()
    with pytest.raises(ContextOverflow, match="context length"):
        Generator(model).generate("word " * (model.context_length + 1))


def test_previous_output_is_the_draft() -> None:
    model = Model()
    model.token_bytes = lambda token: bytes([token])  # type: ignore[method-assign]  # a text has the ids of its bytes
    model.tokenize = lambda text, **_: list(text.encode())  # type: ignore[method-assign]
    model.encode = lambda segments: [1, 2]  # type: ignore[method-assign]
    plain = Generator(model, options={"max_tokens": 9}).generate("x")
    again = Generator(model, "ssbd", {"beta": 0, "max_tokens": 9}).generate("x", previous=plain.text)
    assert (again.text, again.output.passes, again.output.accepted) == (plain.text, 1, 8)
    kept = Generator(model, "cd", {"max_tokens": 9}).generate("x", previous=plain.text[:4])
    assert (kept.output.accepted, kept.output.passes) == (4, 5)


def test_command_says_that_a_text_is_empty(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Silent(Model):
        def token_bytes(self, token: int) -> bytes:
            return b""

    model = Silent()
    monkeypatch.setattr(Generator, "open", lambda *_, **__: Generator(model, options={"max_tokens": 2}, raw=True))
    with pytest.raises(SystemExit):
        main(["generate", "Once upon a time"])
    assert "redraft: the model ended the text at once; one that only translates" in capsys.readouterr().err
