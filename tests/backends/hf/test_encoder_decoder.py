"""Encoder-decoder models of transformers: their greedy ids in fewer passes, one encoder pass a source, captions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra hf")

from redraft import Style, Translator, Update  # noqa: E402
from redraft.backends.hf.encoder_decoder import HfEncoderDecoder  # noqa: E402
from redraft.backends.hf.model import backend_of  # noqa: E402
from redraft.backends.options import HfOptions  # noqa: E402
from redraft.captions.events import Caption  # noqa: E402
from redraft.decoding.backend import Capability  # noqa: E402
from redraft.decoding.decode import decode  # noqa: E402
from redraft.decoding.drafters import Nothing  # noqa: E402
from redraft.decoding.drive import run  # noqa: E402
from redraft.decoding.methods.ssbd import PreviousOutput  # noqa: E402
from redraft.decoding.rules import Exact  # noqa: E402
from redraft.decoding.types import ROOT, Asking, Output, Prompt, Score  # noqa: E402
from redraft.errors import CapabilityError, ContextOverflow, ModelError, OptionError  # noqa: E402
from redraft.generator import Generator  # noqa: E402
from tests.backends.hf import models as tiny  # noqa: E402
from tests.backends.hf.models import END, LIMIT, PAD, VOCABULARY, chain, logs, tree  # noqa: E402

Ids = tuple[int, ...]
Make = Callable[[], Any]
FAMILIES = [tiny.marian, tiny.m2m100, tiny.mbart, tiny.t5]


def opened(model: Any, **options: Any) -> HfEncoderDecoder:
    small: dict[str, Any] = {"context_length": 64, "slots": 2, "device": "cpu", "threads": 1}
    backend = backend_of(model, tiny.tokenizer(), "tiny", HfOptions(**(small | options)))
    assert isinstance(backend, HfEncoderDecoder)
    return backend


def start_of(model: Any) -> Ids:
    return (model.generation_config.decoder_start_token_id,)


def asking(backend: HfEncoderDecoder, source: Ids, previous: Ids = (), begun: Ids = ()) -> Asking[Output]:
    return decode(
        Prompt(start_of(backend.model) + begun, encoder=source),
        PreviousOutput() if previous else Nothing(),
        Exact(),
        previous=previous,
        end_tokens=frozenset({END}),
        limit=LIMIT - len(begun),
    )


def banned(backend: HfEncoderDecoder, logs: list[float]) -> list[float]:
    """Log-probabilities as the backend reports them, without the tokens that the model never writes."""
    return backend.allowed(torch.tensor([logs]))[0].log_softmax(-1).tolist()


def plain(model: Any, source: Ids, prefix: Ids) -> list[list[float]]:
    """(ids, vocabulary) log-probabilities by one pass of the model without any cache."""
    with torch.inference_mode():
        output = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([prefix]), use_cache=False)
    return output.logits[0].log_softmax(-1).tolist()


@pytest.mark.parametrize("make", FAMILIES)
def test_any_draft(make: Make) -> None:
    model, chosen = make(), random.Random(2)
    backend = opened(model)
    slot, kept, lengths = backend.open_slot(), 0, []
    for number, source in enumerate(tiny.prompts(6, seed=3)):
        expected, finished = tiny.greedy(model, source)
        alone = run(asking(backend, source), backend, slot)
        assert (alone.tokens, alone.finished, alone.passes) == (expected, finished, len(expected) + finished)
        draft = tuple(token if chosen.random() < 0.8 else chosen.randrange(VOCABULARY) for token in expected)
        output = run(asking(backend, source, (*draft, PAD, 9)), backend, slot)
        assert (output.tokens, output.finished) == (expected, finished)
        assert output.passes == alone.passes - output.accepted
        assert backend.encoder_passes == number + 1
        kept += output.accepted
        lengths.append(len(set(expected)))
    assert kept > 0
    assert max(lengths) > 2


def test_some_outputs_end_and_some_do_not() -> None:
    ends = {tiny.greedy(make(), source)[1] for make in FAMILIES for source in tiny.prompts(6, seed=3)}
    assert ends == {True, False}


@pytest.fixture
def read() -> Iterator[list[int]]:
    """Ids read by every pass of a decoder that is given embeddings, as the backend gives them."""
    found: list[int] = []

    def look(_module: object, _args: object, named: dict[str, Any]) -> None:
        if named.get("inputs_embeds") is not None:
            found.append(named["inputs_embeds"].shape[1])

    watches = [make().get_decoder().register_forward_pre_hook(look, with_kwargs=True) for make in FAMILIES]
    yield found
    for watch in watches:
        watch.remove()


@pytest.mark.parametrize("make", FAMILIES)
def test_rows_are_those_of_model_after_any_roll_back(make: Make, read: list[int]) -> None:
    model, (source, other) = make(), tiny.prompts(2, seed=8)
    backend = opened(model)
    slots = backend.open_slot(), backend.open_slot()
    begun = start_of(model)
    asked = [
        (0, source, (*begun, 5, 6), (7, 8), 1, 5),
        (0, source, (*begun, 5, 6, 7, 9), (), 1, 1),
        (1, other, (*begun, 5, 6), (7,), 2, 4),
        (0, source, (*begun, 6), (8, 9, 5), 1, 4),
        (0, source, (*begun, 6, 8), (), 3, 3),
        (1, other, (*begun, 5, 6), (7,), 1, 2),
        (0, other, (*begun, 6), (), 1, 2),
    ]
    for slot, encoder, prefix, draft, prompt_rows, fed in asked:
        rows = backend.score([(slots[slot], Score(prefix, chain(draft), prompt_rows, encoder=encoder))])[0]
        assert read.pop() == fed
        expected = plain(model, encoder, prefix + draft)
        for node in range(-prompt_rows, len(draft)):
            found, wanted = logs(rows, node), expected[len(prefix) + node]
            banned = [token for token in range(VOCABULARY) if found[token] == float("-inf")]
            assert banned == ([PAD] if make is tiny.marian else [])
            # A ban lifts all others by the same.
            differences = [found[token] - wanted[token] for token in range(VOCABULARY) if token not in banned]
            assert differences == pytest.approx([differences[0]] * len(differences), abs=1e-3)
            assert banned or differences[0] == pytest.approx(0, abs=1e-3)
    assert backend.encoder_passes == 2, "one for each source, whatever slot asks"


def test_padding_that_model_would_produce_is_banned() -> None:
    model, source = tiny.marian(), tiny.prompts(1)[0]
    assert max(range(VOCABULARY), key=plain(model, source, start_of(model))[0].__getitem__) == PAD
    backend = opened(model)
    rows = backend.score([(backend.open_slot(), Score(start_of(model), encoder=source))])[0]
    assert rows.argmax(ROOT) != PAD
    assert rows.logprob(ROOT, PAD) == float("-inf")


@pytest.mark.parametrize("make", [tiny.m2m100, tiny.mbart])
def test_forced_first_token_is_prompts_second(make: Make) -> None:
    backend, source = opened(make()), tiny.prompts(1, seed=4)[0]
    slot = backend.open_slot()
    for code in (7, 15):
        expected, _finished = tiny.greedy(make(), source, forced_bos_token_id=code)
        output = run(asking(backend, source, begun=(code,)), backend, slot)
        assert (code, *output.tokens) == expected


def test_what_cannot_be_done_is_refused() -> None:
    backend, begun = opened(tiny.t5(), context_length=16), start_of(tiny.t5())
    slot = backend.open_slot()
    assert backend.capabilities == {Capability.EARLY_EXIT}
    with pytest.raises(ModelError, match="'tiny' is an encoder-decoder; its requests need ids for the encoder"):
        backend.score([(slot, Score(begun))])
    with pytest.raises(CapabilityError, match="'tiny' is an encoder-decoder, which scores no draft trees"):
        backend.score([(slot, Score(begun, tree((5, 6), (ROOT, ROOT)), encoder=(5, END)))])
    for encoder, prefix in (((5,) * 17, begun), ((5,), begun * 17)):
        with pytest.raises(ContextOverflow, match="17 tokens do not fit into the context length of 16"):
            backend.score([(slot, Score(prefix, encoder=encoder))])
    backend.close()
    with pytest.raises(ModelError, match="model 'tiny' is closed"):
        backend.score([(slot, Score(begun, encoder=(5, END)))])


UPDATES = [
    Update("1", number, text, final=number == 3) for number, text in enumerate(["ab", "abc d", "abc de", "abc def"])
]


@pytest.mark.parametrize("make", FAMILIES)
def test_captions(make: Make) -> None:
    backend = opened(make())
    outputs: dict[str, list[Ids]] = {}
    passes = {}
    for method, options in (("ar", {}), ("ssbd", {"beta": 0.0})):
        with Translator(backend, ["de", "ja"], method=method, options={**options, "max_tokens": LIMIT}) as translator:
            outputs[method] = []
            for update in UPDATES:
                events = translator.translate(update)
                assert [event.language for event in events if isinstance(event, Caption)] == ["de", "ja"]
                outputs[method].append(translator.state("de").output)
            passes[method] = translator.state("de").tally.passes
            drafted = translator.state("de").tally.drafted
    assert outputs["ssbd"] == outputs["ar"]
    assert drafted == 0 or passes["ssbd"] <= passes["ar"]
    for update, output in zip(UPDATES, outputs["ar"], strict=True):
        encoder = backend.encoder_prompt(update.text, *_languages("en", "de")).encoder
        assert output == tiny.greedy(make(), encoder)[0]


def _languages(*tags: str) -> list[Any]:
    from redraft.captions.languages import parse_language

    return [parse_language(tag) for tag in tags]


@pytest.mark.parametrize(
    ("style", "context"),
    [(Style(), 1), (Style(glossary={"de": [("dog", "Hund")]}), 0), (Style(template="chat"), 0)],
    ids=lambda value: repr(value),
)
def test_styles_that_no_encoder_reads_are_refused(style: Style, context: int) -> None:
    with pytest.raises(
        OptionError, match="(context|glossary|template): an encoder-decoder model accepts only the text"
    ):
        Translator(opened(tiny.t5()), ["de"], style=style, options={"context": context})


# Early exit


@pytest.mark.parametrize("make", FAMILIES)
def test_early_exit_is_first_layer_of_decoder(make: Make) -> None:
    model = make()
    reference = deepcopy(model)
    decoder = reference.get_decoder()
    field = "block" if hasattr(decoder, "block") else "layers"
    setattr(decoder, field, getattr(decoder, field)[:1])
    target = opened(model)
    short = target.early_exit(1)
    slots = target.open_slot(), short.open_slot()
    begun = start_of(model)
    for number, source in enumerate(tiny.prompts(3, seed=5)):
        (rows,) = short.score([(slots[1], Score((*begun, 5, 6), chain((7, 8)), encoder=source))])
        (own,) = target.score([(slots[0], Score((*begun, 5, 6), chain((7, 8)), encoder=source))])
        for answer, backend, alone in ((rows, short, reference), (own, target, model)):
            expected = plain(alone, source, (*begun, 5, 6, 7, 8))
            for node in (ROOT, 0, 1):
                assert logs(answer, node) == pytest.approx(banned(backend, expected[node - 2]), abs=1e-4)
        assert target.encoder_passes + short.encoder_passes == number + 1
    assert {id(each) for each in short.model.parameters()} < {id(each) for each in target.model.parameters()}
    short.close()
    with pytest.raises(CapabilityError, match="must be after 1 to 1 of its 2 layers, not after 2"):
        target.early_exit(2)


@pytest.mark.parametrize("make", FAMILIES)
def test_bild_by_early_exit(make: Make) -> None:
    """At a rollback of 0 nothing is kept, so the output is greedy; without fallback and rollback, it is the exit's."""
    texts = ["".join(chr(ord("a") + token % 20) for token in source) for source in tiny.prompts(2, seed=4)]
    for fallback, rollback in ((0, 0), (0, 100)):
        options: dict[str, float | str] = {"fallback": fallback, "rollback": rollback, "end": "verified"}
        backend = opened(make())
        with Generator(backend, "bild-early-exit", {**options, "max_tokens": 5}) as generator:
            for text in texts:
                made = generator.generate(text)
                kept = made.output.accepted
                assert made.output.draft_passes > 0 and (kept > 0) == (rollback > 0)
                if not rollback:
                    source = backend.plain_prompt(text).encoder
                    assert made.output.tokens == tiny.greedy(backend.model, source, 5)[0]


# Texts other than translations


@pytest.mark.parametrize("method", ["ar", "jacobi", "gs-jacobi", "pld"])
def test_generated_texts(method: str) -> None:
    for make in (tiny.marian, tiny.t5):
        backend, pieces = opened(make()), list[str]()
        with Generator(backend, method, {"max_tokens": LIMIT}) as generator:
            made = generator.generate("abc dabc", pieces.append)
        expected = tiny.greedy(backend.model, backend.tokenizer.encoder_ids("abc dabc"))[0]
        assert made.output.tokens == expected
        whole = b"".join(map(backend.token_bytes, expected)).decode().removeprefix(" ")
        assert made.text == "".join(pieces) == whole


def test_model_that_needs_target_language_only_translates() -> None:
    tokenizer = tiny.tokenizer("__de__", "__en__")
    backend = backend_of(tiny.m2m100(), tokenizer, "tiny", HfOptions(64, 1, device="cpu", threads=1))
    with Generator(backend) as generator, pytest.raises(CapabilityError, match="'tiny' needs a target language"):
        generator.generate("abc")
