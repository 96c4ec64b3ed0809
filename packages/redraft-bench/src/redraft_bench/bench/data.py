"""Opens the data named by ``--data``: a test set, talks, or a file of your own."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from redraft.captions.languages import parse_language
from redraft.captions.talk import TRANSCRIPT
from redraft.errors import InputError, OptionError
from redraft_bench.eval.sets import PAIR, SETS, lag_stream, lines_of, load_set, read_pairs
from redraft_bench.eval.spoken import SPOKEN, load_spoken
from redraft_bench.eval.stream import Stream
from redraft_bench.eval.talks import recogniser_stream, talk_stream
from redraft_bench.eval.tasks import TextTask, read_tasks, task_stream

#: The demo talk, which ships with the package and has no references.
TALK = "talk"
#: Questions, summaries and code, written for this package.
TASKS = "tasks"
TASK_SET = Path(str(files(__package__))) / "tasks.jsonl"
#: Folder of the updates that recognisers have sent, with the ends of words (`redraft_bench.scripts.streams`).
STREAMS = Path(str(files(__package__))) / "streams"
#: Names of such streams.
RECOGNISED = ("talk-whisper", "dickens", "acl", "acl-second", "acl-noise", "acl-whisper", "tatoeba")
#: The one on which `--hold-back` was tuned, which no benchmark reports.
TUNED = "acl"
TALKS = ("acl6060.talks", "recogniser")


def open_stream(
    name: str,
    to: str,
    *,
    limit: int = 0,
    least_words: int = 0,
    lag: int = 3,
    source: str = "en",
) -> Stream:
    """Open a data set or a file as a stream for one target language.

    Args:
        name: name of a data set, or path of a file.
        to: target language, as a tag or an English name.
        least_words: minimum number of source words of a segment; test sets only.
        lag: words added by each update; 0 gives whole sentences.  A file, ``recogniser``, ``talk`` and `RECOGNISED`
            have updates of their own, of which 0 keeps only the final ones.  Files of pairs have none.
        source: language of the sources of a test set.

    Raises:
        InputError: the set or file does not exist, or the set lacks the language.
        OptionError: ``least_words`` or ``source`` has no effect on this data.
    """
    _check(name, least_words, source)
    if tasks := tasks_of(name, limit):
        return task_stream(Path(name).stem, tasks, parse_language(to).code)
    if are_pairs(name):
        stream = lag_stream(read_pairs(Path(name), limit, least_words), to, lag)
    elif name in (*SETS, SPOKEN):
        test = load_spoken(to, limit) if name == SPOKEN else load_set(name, to, limit, least_words, source)
        stream = lag_stream(test, to, lag)
    elif name == TALK:
        stream = Stream.load(TRANSCRIPT)
        stream = replace(stream, segments=stream.segments[: limit or None])
    elif name in RECOGNISED:
        stream = recognised(name, to, limit)
    elif name == "acl6060.talks":
        stream = talk_stream(languages=(to,), lag=lag, limit=limit)
    elif name == "recogniser":
        stream = replace(recogniser_stream(languages=(to,), limit=limit), name=name)
    elif Path(name).is_file():
        stream = Stream.load(Path(name))
        stream = replace(stream, segments=stream.segments[: limit or None])
    else:
        known = ", ".join((TALK, TASKS, *RECOGNISED, *SETS, SPOKEN, *TALKS))
        raise InputError(f"--data must be one of {known}, or a file that ends in .tsv or .jsonl, not {name!r}")
    if lag == 0 and not reveals(name):
        stream = replace(stream, segments=tuple(replace(each, updates=each.updates[-1:]) for each in stream.segments))
    return stream


def _check(name: str, least_words: int, source: str) -> None:
    if Path(name).suffix in (".jsonl", ".tsv") and not Path(name).is_file():
        raise InputError(f"--data: file {name!r} does not exist")
    if least_words and not (are_pairs(name) or name in SETS):
        raise OptionError(f"least_words is for test sets, so leave it out for {name!r}")
    if parse_language(source).code != "en" and not (name in SETS or Path(name).is_file()):
        raise OptionError(f"--from: {name!r} is English")


def recognised(name: str, to: str, limit: int = 0) -> Stream:
    """Load a stream of `RECOGNISED`, with its references if they are in the data folder."""
    stream = Stream.load(STREAMS / f"{name}.jsonl")
    segments = stream.segments[: limit or None]
    lines = STREAMS / f"{name}.lines.json"
    if lines.exists():
        spoken = json.loads(lines.read_text("utf-8"))
        try:
            test = load_set(spoken["set"], to)
        except InputError:  # not there, or not in this language
            return replace(stream, segments=segments)
        references = dict(zip(test.sources, test.references, strict=True))
        space = " " if parse_language(to).spaced else ""
        held: list[list[str]] = [[] for _ in stream.segments]
        for line, place in spoken["lines"]:
            if line in references:
                held[place].append(references[line])
        segments = tuple(
            replace(segment, references={parse_language(to).code: space.join(texts)} if texts else {})
            for segment, texts in zip(segments, held, strict=False)
        )
    return replace(stream, segments=segments)


def tasks_of(name: str, limit: int = 0) -> dict[str, TextTask]:
    """Return the tasks of a data set or file by the names of their utterances; nothing if it has none.

    ``tasks`` ships with the package; ``limit`` is for each kind.
    """
    path = TASK_SET if name == TASKS else Path(name)
    if name != TASKS and (path.suffix != ".jsonl" or not path.is_file() or not _begins_with(path, "task")):
        return {}
    return read_tasks(path, limit)


def _begins_with(path: Path, field: str) -> bool:
    return f'"{field}"' in next((line for _, line in lines_of(path)), "")


def reveals(name: str) -> bool:
    """Whether ``lag`` sets the updates of this data; streams of updates have their own."""
    return name in SETS or name in (SPOKEN, "acl6060.talks") or are_pairs(name)


def are_pairs(name: str) -> bool:
    """Whether this is a file of sources and references (`read_pairs`), and not a stream of updates."""
    path = Path(name)
    if name in (*SETS, *RECOGNISED) or not path.is_file():
        return False
    return path.suffix == ".tsv" or _begins_with(path, PAIR[0])
