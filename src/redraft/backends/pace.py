"""Whether a model keeps up with live speech here: one arithmetic, for admission and for reports."""

from __future__ import annotations

from redraft.decoding.cost import CostCurve

#: Updates a second of live speech: 2.5 words a second, and an update every two words.
UPDATES_A_SECOND = 1.25
#: An update without drafts: new ids of the prompt, and tokens of the translation.
PROMPT, TOKENS = 8, 16
#: Passes over one token that follow the one that verifies the previous translation, as real models need them.
FURTHER = 4
#: Maximum number of languages that is reported.
_MOST = 64
_WORDS = "no one two three four five six seven eight nine ten eleven twelve".split()


def update_seconds(curve: CostCurve, languages: int = 1, *, drafts: bool = True) -> float:
    """Return how many seconds an update takes.

    Args:
        curve: cost of a pass.
        languages: number of languages into which it is translated at the same time, in shared passes.
        drafts: whether the method drafts the previous translation.
    """
    if drafts:
        return curve((PROMPT + TOKENS) * languages) + FURTHER * curve(languages)
    return curve(PROMPT * languages) + (TOKENS - 1) * curve(languages)


def busy_share(curve: CostCurve, languages: int = 1, *, drafts: bool = True) -> float:
    """Return the share of its time that live speech in several languages keeps a model busy; above 1 is too much."""
    return UPDATES_A_SECOND * update_seconds(curve, languages, drafts=drafts)


def languages_in_time(curve: CostCurve, *, drafts: bool = True) -> int:
    """Return into how many languages a model translates every update of live speech in time, at most 64."""
    return next((n for n in range(_MOST) if busy_share(curve, n + 1, drafts=drafts) > 1), _MOST)


def pace(curve: CostCurve, languages: int | None = None, *, drafts: bool = True) -> str:
    """Return one sentence on what a model can do here, without a full stop.

    Args:
        curve: cost of a pass.
        languages: number of languages that are wanted; None says where the limit is.
        drafts: whether the method drafts the previous translation.
    """
    most = languages_in_time(curve, drafts=drafts)
    wanted = most + 1 if languages is None else languages
    rate = 1 / update_seconds(curve, drafts=drafts)
    said = f"this model translates about {rate:.{0 if rate >= 10 else 1}f} updates a second here"
    remedy = "a smaller model, a GPU or more cores"
    if most == 0:
        return f"{said}, too few for live speech, so captions come late: try {remedy}"
    enough = f"{said}, enough for live speech in {_languages(min(wanted, most))}"
    if most >= min(wanted, _MOST):
        return enough
    if languages is None:
        return f"{enough}; for more, use {remedy}"
    return f"{enough}, but not in {_number(wanted)}: try fewer languages, {remedy}"


def _languages(count: int) -> str:
    return "one language" if count == 1 else f"{_number(count)} languages"


def _number(count: int) -> str:
    return _WORDS[count] if count < len(_WORDS) else str(count)
