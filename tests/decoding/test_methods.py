"""The table of methods: names, options with their ranges, and required capabilities."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from redraft.backends.numpy_rows import NumpyRows
from redraft.decoding.backend import Capability
from redraft.decoding.decode import decode
from redraft.decoding.drafters import Nothing
from redraft.decoding.drive import run
from redraft.decoding.method import Method, Option, Setup, Value
from redraft.decoding.methods import BETA, all_methods, broken_plug_ins, get_method, register, registry
from redraft.decoding.methods.ssbd import PreviousOutput
from redraft.decoding.rules import Exact
from redraft.decoding.types import OF_PREVIOUS, Draft, Prompt, Provenance, Score
from redraft.errors import CapabilityError, OptionError
from tests.fakes import RandomModel

STEPS = Option("steps", 3, 1, 8, "how many")


@pytest.fixture(autouse=True)
def _own_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    monkeypatch.setattr(registry, "_REGISTRY", dict(all_methods()))


def method(name: str, *options: Option, needs: frozenset[Capability] = frozenset()) -> Method:
    return Method(name, "", "", "nothing", "exact", lambda _setup: (Nothing(), Exact()), options, needs)


def test_defaults_are_papers() -> None:
    every = {"agree": 1, "first_sight": 1, "mask_k": 0, "plain": 0, "context": 0, "max_tokens": 256}
    assert get_method("ssbd-pld").check({}) == {"beta": 0.2, "floor": 0.0, "key": 3, "ngram": 10} | every
    assert get_method("ar").check({}) == every
    assert get_method("cd").check({}) == every


@pytest.mark.parametrize("value", [0, 1, 0.5, 1e-9, 0.0, 1.0])
def test_ends_of_range_belong_to_it(value: float) -> None:
    assert get_method("ssbd").check({"beta": value})["beta"] == value
    assert get_method("ssbd").check({"floor": value})["floor"] == value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (-0.001, "-0.001"),
        (1.5, "1.5"),
        (True, "True"),
        (False, "False"),
        ("0.2", "'0.2'"),
        (None, "None"),
        (10**400, str(10**400)),
    ],
)
@pytest.mark.parametrize("name", ["beta", "floor"])
def test_options_out_of_range(name: str, value: float, shown: str) -> None:
    with pytest.raises(OptionError) as raised:
        get_method("ssbd").check({name: value})
    assert str(raised.value) == f"{name} must be a number from 0 to 1, not {shown}"


def test_unknown_options_are_named_with_those_there_are() -> None:
    with pytest.raises(OptionError) as raised:
        get_method("ssbd").check({"beta": 0.1, "gamma": 0.1})
    every = "agree, first_sight, mask_k, plain, context, max_tokens"
    known = f"beta, floor, end, temperature, top_p, top_k, seed, {every}"
    assert str(raised.value) == f"method 'ssbd' has no option 'gamma'; its options: {known}"
    with pytest.raises(OptionError) as raised:
        get_method("ar").check({"beta": 0.1})
    assert str(raised.value) == f"method 'ar' has no option 'beta'; its options: {every}"


def test_unknown_methods_are_named_with_those_there_are() -> None:
    with pytest.raises(OptionError) as raised:
        get_method("sbd")
    assert str(raised.value) == "method 'sbd' is not known; the nearest is ssbd; known methods: " + ", ".join(
        all_methods()
    )
    assert {"ar", "cd", "ssbd"} <= set(all_methods())


def test_name_is_registered_once() -> None:
    mine = method("mine", STEPS)
    register(mine)
    assert get_method("mine") is mine
    for name in ("mine", "ssbd"):
        with pytest.raises(OptionError) as raised:
            register(method(name))
        assert str(raised.value) == f"method {name!r} is registered already"
    assert get_method("mine") is mine
    with pytest.raises(OptionError, match="steps must be a number from 1 to 8, not 0$"):
        mine.check({"steps": 0})


def test_table_given_out_is_copy() -> None:
    all_methods().clear()
    assert "ar" in all_methods()


def test_plug_ins_are_loaded_on_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    class EntryPoint:
        def load(self) -> None:
            register(method(f"plugged{len(loaded)}"))
            loaded.append(self)

    def entry_points(group: str) -> list[EntryPoint]:
        return [EntryPoint()] if group == "redraft.methods" else []

    loaded: list[EntryPoint] = []
    monkeypatch.setattr(registry, "entry_points", entry_points)
    monkeypatch.setattr(registry, "_loaded", False)
    assert get_method("plugged0").name == "plugged0"
    assert "plugged0" in all_methods()
    assert len(loaded) == 1


def missing_import() -> None:
    register(method("half"))
    raise ImportError("no module named its_friend")


def taken_name() -> None:
    register(method("half"))
    register(method("ssbd"))


def exits() -> None:
    raise SystemExit("not on this system")


BROKEN = {
    "missing_import": (missing_import, "ImportError: no module named its_friend"),
    "taken_name": (taken_name, "OptionError: method 'ssbd' is registered already"),
    "exits": (exits, "SystemExit: not on this system"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_plug_in(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    load, reason = BROKEN[name]
    wraps = SimpleNamespace(
        name="sound", value="sound", load=lambda: register(replace(get_method("ssbd"), name="sound"))
    )
    plug_ins = [SimpleNamespace(name=name, value="of_others", load=load), wraps]
    monkeypatch.setattr(registry, "entry_points", lambda group: plug_ins)
    monkeypatch.setattr(registry, "_loaded", False)
    monkeypatch.setattr(registry, "_BROKEN", [])
    before = set(registry._REGISTRY)
    assert set(all_methods()) == before | {"sound"}
    (problem,) = broken_plug_ins()
    assert problem.startswith(f"plug-in {name!r} (of_others) could not be loaded: {reason}")
    with pytest.raises(OptionError) as raised:
        get_method("half")
    assert problem in str(raised.value)


def test_bias_is_one_of_the_options() -> None:
    with pytest.raises(OptionError, match="bias of method 'mine' must be one of its options"):
        replace(method("mine"), bias=BETA)


def test_require() -> None:
    demanding = method("mine", needs=frozenset({Capability.TREES, Capability.PROMPT_ROWS}))
    demanding.require(frozenset({Capability.TREES, Capability.PROMPT_ROWS}))
    with pytest.raises(CapabilityError) as raised:
        demanding.require(frozenset({Capability.TREES}))
    assert str(raised.value) == "method 'mine' needs a backend with prompt rows"
    with pytest.raises(CapabilityError, match="needs a backend with trees$"):
        demanding.require(frozenset({Capability.PROMPT_ROWS, Capability.BATCHES}))


@pytest.mark.parametrize("name", list(all_methods()))
def test_built_in_methods(name: str) -> None:
    found = get_method(name)
    assert found.name == name
    for option in found.options:
        assert option.check(option.default) == option.default and option.help
    setup = Setup(found.check({}), frozenset({0}))
    (drafter, _), (another, _) = found.build(setup), found.build(setup)
    assert drafter is not another, "a drafter keeps state, so every decoding needs its own"
    assert found.summary and found.paper and found.drafter and found.rule


@pytest.mark.parametrize("name", list(all_methods()))
def test_bias_is_that_towards_what_is_shown(name: str) -> None:
    found, shown = get_method(name), Draft.previous((3, 4), 2)
    if found.bias:
        _, rule = found.build(Setup(found.check({found.bias.name: 0.37}), frozenset({0})))
        assert rule.biases(shown) == (0.37, 0.37)
    else:
        _, rule = found.build(Setup(found.check({}), frozenset({0})))
        assert rule.biases(shown) in (None, (0.0, 0.0), (1.0, 1.0))


#: The end has more probability than token 2.
SPREAD = [0.35, 0.4, 0.25]


@pytest.mark.parametrize(
    ("name", "options", "trusted"),
    [
        ("aasd", {}, {Provenance.PROMPT}),
        ("aasd", {"end_guard": "on"}, set()),
        ("ssbd-aasd", {}, set()),
        ("ssbd-aasd", {"end_guard": "off"}, {Provenance.SHOWN, Provenance.PREVIOUS}),
    ],
)
def test_what_aasd_trusts(name: str, options: dict[str, Value], trusted: set[str]) -> None:
    found, rows = get_method(name), NumpyRows(np.log([SPREAD] * 2), 0)
    _, rule = found.build(Setup(found.check({"verification": "threshold", **options}), frozenset({0})))
    every = OF_PREVIOUS | {Provenance.PROMPT, Provenance.GENERATED, Provenance.MODEL, Provenance.ITERATION}
    assert {each for each in every if rule.judge(Draft.chain((2,), each), rows).accepted} == trusted


def test_aasd_keeps_rows_of_the_prompt() -> None:
    model, found, memory = RandomModel(1, end_bias=-100), get_method("aasd"), dict[type, object]()
    for prompt in ((1, 2, 3, 4), (1, 2, 3, 4, 5)):
        drafter, rule = found.build(Setup(found.check({}), model.end_tokens, memory=memory))
        run(decode(Prompt(prompt), drafter, rule, end_tokens=model.end_tokens, limit=2), model, 0)
    assert [request.prompt_rows for request in model.requests] == [4, 1, 2, 1]


def test_display_of_methods() -> None:
    chosen = {name: found.defaults for name, found in all_methods().items() if found.defaults}
    assert chosen == {"redraft": {"agree": 2, "first_sight": 0.4}}, "the papers show all"


@pytest.mark.parametrize(("beta", "floor", "kept"), [(0, 0, 0), (1, 0, 1), (1, 1, 0)])
def test_ssbd_is_built_with_its_options(beta: float, floor: float, kept: int) -> None:
    model, prefix = RandomModel(5), (1, 2)
    worst = min(range(1, 12), key=lambda token: model.logits(prefix)[token])
    draft = Draft.chain((worst,), Provenance.PREVIOUS)
    drafter, rule = get_method("ssbd").build(
        Setup({"beta": beta, "floor": floor, "end": "model", "temperature": 0}, model.end_tokens)
    )
    assert isinstance(drafter, PreviousOutput)
    assert len(rule.judge(draft, model.score([(0, Score(prefix, draft))])[0]).accepted) == kept
