"""Opens the data named by ``--data``: a test set, talks, or a file of your own."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from itertools import groupby
from pathlib import Path

from redraft.captions.talk import load_talk
from redraft.errors import InputError, OptionError
from redraft_bench.eval.perturb import perturb
from redraft_bench.eval.revise import revise
from redraft_bench.eval.sets import SETS, lag_stream, load_set
from redraft_bench.eval.stream import Segment, Stream
from redraft_bench.eval.talks import recogniser_stream, talk_stream

#: The demo talk, which ships with the package and has no references.
TALK = "talk"
#: What Moonshine tiny (moonshine-voice 0.0.73) has sent for a reading of Dickens, with its revisions; no references.
DICKENS = "dickens"
TALKS = ("acl6060.talks", "recogniser")


def open_stream(
    name: str,
    to: str,
    *,
    form: str = "jsonl",
    limit: int = 0,
    least_words: int = 0,
    lag: int = 3,
    noise: bool = False,
    revisions: float = 0.0,
    seed: int = 0,
) -> Stream:
    """Open a data set or a JSON Lines file as a stream for one target language.

    Args:
        name: name of a data set, or path of a file.
        to: target language, as a tag or an English name.
        form: format of the file, one of `redraft_bench.eval.stream.FORMS`.
        limit: maximum number of segments; 0 takes all.
        least_words: minimum number of source words of a segment; test sets only.
        lag: words added by each update; 0 gives whole sentences.  A file, ``recogniser``, ``dickens`` and ``talk`` have
            updates of their own, of which 0 keeps only the final ones.
        noise: whether to simulate recognition errors in the newest words.
        revisions: share of updates that rewrite earlier words, in utterances of several sentences
            (`redraft_bench.eval.revise`); 0 leaves the data unchanged.
        seed: random seed for ``noise`` and ``revisions``.

    Raises:
        InputError: the set or file does not exist, or the set lacks the language.
        OptionError: ``revisions`` is out of range, or combined with ``noise`` or whole sentences.
    """
    if name in SETS:
        stream = lag_stream(load_set(name, to, limit, least_words), to, lag)
    elif name == TALK:
        utterances = groupby(load_talk(), key=lambda update: update.utterance)
        segments = tuple(Segment(tuple(updates)) for _, updates in utterances)
        stream = Stream(TALK, segments[: limit or None])
    elif name == DICKENS:
        stream = Stream.load(Path(str(files(__package__) / "dickens.jsonl")), "jsonl")
        stream = replace(stream, name=DICKENS, segments=stream.segments[: limit or None])
    elif name == "acl6060.talks":
        stream = talk_stream(languages=(to,), lag=lag, limit=limit)
    elif name == "recogniser":
        stream = recogniser_stream(languages=(to,), limit=limit)
    elif Path(name).is_file():
        stream = Stream.load(Path(name), form)
        stream = replace(stream, segments=stream.segments[: limit or None])
    else:
        raise InputError(
            f"--data must be one of {', '.join((TALK, DICKENS, *SETS, *TALKS))} or a JSON Lines file, not {name!r}"
        )
    if revisions:
        if noise or lag == 0:
            raise OptionError("revisions cannot be combined with noise, or with whole sentences (lag 0)")
        return revise(stream, revisions, seed, lag=lag)
    if lag == 0 and not reveals(name):
        stream = replace(stream, segments=tuple(replace(each, updates=each.updates[-1:]) for each in stream.segments))
    return perturb(stream, seed) if noise else stream


def reveals(name: str) -> bool:
    """Whether ``lag`` sets the updates of this data set; a file and ``recogniser`` have their own."""
    return name in SETS or name == "acl6060.talks"
