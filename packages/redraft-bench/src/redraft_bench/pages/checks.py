"""The measurements in docs/benchmarks and the model card besides benchmark tables: exactness, final captions, ...

``exact.jsonl``, ``finals.jsonl``, ... in ``benchmarks/results`` hold what the modules of these names in
`redraft_bench.scripts` have printed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import TypeAlias

from redraft.captions.languages import parse_language
from redraft.models import SHIPPED, shipped_path
from redraft.signature import file_hash
from redraft_bench.bench.plots import Plot
from redraft_bench.bench.read import Result
from redraft_bench.eval.columns import COLUMNS, cell
from redraft_bench.eval.losses import LOSSES
from redraft_bench.eval.table import listed, markdown_table, span
from redraft_bench.pages import gpu, language_models
from redraft_bench.pages.language_models import NAMES, Columns, Row

EXACT: Columns = {
    "method": lambda row: f"{row['method']} as {row['compared_with']}",
    "weights": lambda row: (
        "Gemma 3 270M, " * ("gemma" in row["signature"])
        + "Qwen2.5-Coder 0.5B, " * ("coder-0.5b" in row["signature"])
        + "the tiny model, " * ("demo-tiny" in row["signature"])
        + next((name for name in ("F32", "Q4_K_M") if name in row["signature"]), "as shipped")
    ),
    "kernels": lambda row: "exact" if "exact:True" in row["signature"] else "default",
    "updates": lambda row: str(row["updates"]),
    "mismatches": lambda row: str(row["mismatches"]),
    "not explained by rounding": lambda row: str(row["unexplained"]),
}
#: Columns of `EXACT` that are sums over languages -> their fields.
_COUNTED = {"updates": "updates", "mismatches": "mismatches", "not explained by rounding": "unexplained"}


LIVE: Columns = {
    "model": lambda row: NAMES[row["model"]],
    "languages": lambda row: str(row["languages"]),
    "method": lambda row: str(row["method"]),
    "first answer s": lambda row: f"{row['answer_first']:.1f}",
    "answer p50 s": lambda row: f"{row['answer_p50']:.1f}",
    "p95 s": lambda row: f"{row['answer_p95']:.1f}",
    "passed over": lambda row: f"{row['passed_over']:.0%}",
    "busy": lambda row: f"{row['busy']:.0%}",
    "first shown s": lambda row: f"{row['lag_first']:.1f}",
    "for good s": lambda row: f"{row['lag_good']:.1f}",
    "retracted": lambda row: f"{row['retracted']:.1f}",
}
#: Processors of kernels and updates.
PROCESSORS = {
    "AMD EPYC (25-1)": "Zen 3, AVX2",
    "AMD EPYC (25-17)": "Zen 4, AVX-512 VNNI",
    "AMD EPYC (26-2)": "Zen 5, AVX-512 VNNI",
    "Intel Xeon Processor (6-207) AMX": "Xeon 6-207, AMX",
}


def measured_on(row: Row) -> str:
    """Return the processor of a row with what matters to its kernels."""
    [label] = processors([row["signature"]])
    return PROCESSORS.get(label, label)


KERNELS: Columns = {
    "processor": measured_on,
    "model": lambda row: NAMES.get(row.get("model", "demo"), "demo"),
    "weights": lambda row: str(row["weights"]),
    "threads": lambda row: str(row.get("threads", 1)),
    "build": lambda row: str(row["build"]),
    **{
        f"T({size}) ms": lambda row, size=size: f"{row[f't{size}']:.1f}"  # type: ignore[misc]
        for size in (1, 2, 4, 8, 16, 32)
    },
}
FINALS: Columns = {
    "model": lambda row: NAMES.get(row.get("model", "demo"), "demo"),
    "data": lambda row: str(row["data"]),
    "to": lambda row: row["target_language"],
    "final": lambda row: str(row["final"]),
    "segments": lambda row: str(row["segments"]),
    "BLEU": lambda row: f"{row['bleu']:.1f}",
    "chrF": lambda row: f"{row['chrf']:.1f}",
    "gain": lambda row: _gained(row, "chrf_gain"),
    "gain over ar": lambda row: _gained(row, "chrf_gain_over_ar"),
    "ms": lambda row: f"{row['milliseconds']:.0f}",
    "ms, 95%": lambda row: f"{row['milliseconds_p95']:.0f}",
    "changed": lambda row: f"{row['changed']:.1%}",
    "finals that change": lambda row: str(row["changed_finals"]),
}


def _gained(row: Row, field: str) -> str:
    return f"{row[field]:+.1f} ({row[f'{field}_low']:+.1f} to {row[f'{field}_high']:+.1f})"


LISTENING: Columns = {
    "recogniser": lambda row: str(row["recogniser"]).partition(" ")[0],
    "to": lambda row: ", ".join(row["to"]),
    "wrong words": lambda row: f"{row['word_errors']:.1%}" if "word_errors" in row else "",
    "lag p50 s": lambda row: str(row.get("lag_p50", "")),
    "lag p95 s": lambda row: str(row.get("lag_p95", "")),
    "CPU s per s of speech": lambda row: f"{row['cpu_recognition']:.2f}",
    "of the translation": lambda row: f"{row['cpu_rest']:.2f}" if row["to"] else "",
}
CARD: Columns = {
    "set": lambda row: str(row["data"]),
    "to": lambda row: row["target_language"],
    "segments": lambda row: str(row["segments"]),
    "BLEU": lambda row: f"{row['bleu']:.1f}",
    "chrF": lambda row: f"{row['chrf']:.1f}",
    "cut short": lambda row: str(row["failures"]),
}
HYBRIDS: Columns = {
    "model or run": lambda row: str(row.get("model") or row["data"]),
    "goes back": lambda row: str(row.get("goes_back", "")).replace("anchors", "by copies of its state"),
    "method": lambda row: str(row.get("method", "")).rpartition(", ")[0],
    **{
        heading: lambda row, field=field: f"{row[field]:,}" if field in row else ""  # type: ignore[misc]
        for heading, field in {
            "requests": "asked",
            "passes": "passes",
            "tokens": "least",
            "tokens read": "read",
            "updates timed": "timed",
        }.items()
    },
    "CPU ms an update": lambda row: f"{row['milliseconds']:,.0f}" if "milliseconds" in row else "",
}
#: What the model card says below its second table.
LOST = """\
The set *spoken*: translations that are empty, lack their end, or lack what the source has. It has short turns,
questions, numbers, times, prices, names, greetings, and text as recognisers write and cut it, chosen by a rule from
pairs that training never sees. Every reference keeps what is counted, so zero can be reached. Many references are free,
so its chrF compares weights, not languages.
"""
#: File name, plot and result of a picture.
Picture: TypeAlias = tuple[str, Plot, Result]
#: The second line of every page.
BACK = "[All benchmarks](README.md)\n"


@dataclass(frozen=True, slots=True)
class Check:
    """A measurement besides the benchmark tables, and its page.

    Attributes:
        name: name of the module in `benchmarks`, of its file of rows and of the page.
        about: one sentence on the question that it answers.
        command: what measures it, if that is not the module of its name.
        read: returns its rows from the folder of results, if they are not in the file of its name.
        figures: columns shown in the index if there are no findings.
        remark: what readers need to know about the table, without figures.
        findings: sentences with figures of the rows.
        overview: tables instead of one with the columns.
        summed: whether rows that differ in language only are one.
        picture: file name, plot and result of its picture, if rows have what it shows.
    """

    name: str
    title: str
    about: str
    columns: Columns
    figures: tuple[str, ...]
    remark: str = ""
    findings: Callable[[Sequence[Row]], str] = lambda rows: ""
    overview: Callable[[Sequence[Row]], str] | None = None
    summed: bool = False
    picture: Callable[[Sequence[Row]], Picture | None] = lambda rows: None
    command: str = ""
    read: Callable[[Path], Sequence[Row]] | None = None
    rows: Sequence[Row] = ()

    def page(self) -> str:
        """Return the page, with the table and the signatures of its rows."""
        command = self.command or f"python -m redraft_bench.scripts.{self.name}"
        about = f"Measured by `{command}`. {self.remark}".rstrip()
        texts = [f"{text}\n" for text in (self.findings(self.rows), about) if text]
        rows = _summed(self.rows) if self.summed else self.rows
        texts.append(self.overview(rows) if self.overview else table(rows, self.columns))
        if shown := self.drawn():
            name, plot, _result = shown
            texts.append(f"![{plot.name}]({name})\n\n*{plot.about}*\n")
        texts.append(below(str(row["signature"]) for row in self.rows))
        return "\n".join([f"# {self.title}\n", BACK, *texts, *self._texts()])

    def drawn(self) -> Picture | None:
        """Return file name, plot and result of its picture, if it has one."""
        return self.picture(self.rows)

    def _texts(self) -> list[str]:
        """Return what each recogniser wrote, folded, if rows have texts."""
        texts = {row["recogniser"]: row["text"] for row in reversed(self.rows) if "text" in row}
        return [folded(f"Text of {name}", f"> {text}\n") for name, text in reversed(texts.items())]

    def headline(self) -> str:
        """Return what the index says: the findings, or the range of each of its columns."""
        if findings := self.findings(self.rows):
            return findings
        found = []
        for name in self.figures:
            cells = sorted({self.columns[name](row) for row in self.rows}, key=lambda text: float(text.rstrip("%")))
            found.append(f"{name} {'–'.join(dict.fromkeys((cells[0], cells[-1])))}")
        return ", ".join(found)


def finals(rows: Sequence[Row]) -> str:
    """Return a sentence for each way to decode a final caption: its gain and its time."""
    rows = [row for row in rows if "final" in row]
    plain = {_cell_of(row): row for row in rows if row["final"] == "no search"}
    names = dict.fromkeys(row["final"] for row in rows if row["final"] not in ("no search", "ar"))
    return " ".join(_gain(name, [row for row in rows if row["final"] == name], plain) for name in names)


def _finals_page(rows: Sequence[Row]) -> str:
    """Return the table, and below it, folded, the captions of the demo talk that differ."""
    captions: dict[str, list[Row]] = {}
    for row in rows:
        if "source" in row:
            captions.setdefault(row["target_language"], []).append(row)
    ways = {way: lambda row, way=way: str(row[way]) for way in ("source", "no search", "search", "ar")}
    lists = [
        folded(f"The demo talk, {parse_language(language).name}: {len(found)} finals differ", table(found, ways))
        for language, found in captions.items()
    ]
    return "\n".join([table([row for row in rows if "final" in row], FINALS), *lists])


def _read_finals(results: Path) -> list[Row]:
    return [*_rows(results / "finals.jsonl"), *_rows(results / "finals-talk.jsonl")]


def _cell_of(row: Row) -> tuple[str, ...]:
    """Return what a row of `finals` shares with those of other ways."""
    return row["data"], row["target_language"], row["signature"]


#: The writers of subtitles, ours first.
WRITERS = ("Redraft", "Whisper", "Whisper, lines set")


def subtitles(rows: Sequence[Row]) -> str:
    """Return sentences on what is too fast or too wide, and how late ours come."""
    kept = [[row for row in rows if row["writer"] == name and row["needed"] <= 1] for name in WRITERS]
    if not all(kept):
        return ""
    fast = [f"{fmean(row['fast'] for row in each):.0%}" for each in kept]
    wide = [f"{fmean(row['wide'] for row in each):.0%}" for each in kept]
    late = max(row["late_p95"] for row in kept[0])
    needed = [row["needed"] for row in rows if row["needed"] > 1 and row["writer"] == WRITERS[0]]
    return (
        f"Where the words can be read in the time of the talk, {fast[0]} of Redraft's cues are too fast; of Whisper's, "
        f"{fast[1]}, and with its options for lines {fast[2]}. {wide[1]} of Whisper's cues have a line that is too "
        f"wide, {wide[0]} of Redraft's; 95% of Redraft's cues begin at most {late:.1f} s after their words. In "
        f"{len(needed)} of the {len(rows) // len(WRITERS)} rows, reading takes {span(needed, '.1f')} times as long as "
        "speaking, so that some cues are too fast, however they are cut or held."
    )


def _subtitles_page(rows: Sequence[Row]) -> str:
    """Return the table: a row for each talk, language and profile, with the figures of all writers."""
    found: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in rows:
        found.setdefault((row["data"], row["target_language"], row["profile"]), {})[row["writer"]] = row

    def of_all(field: str, form: str) -> Callable[[Row], str]:
        return lambda row: " / ".join(format(row[name][field], form) for name in WRITERS if name in row)

    columns: Columns = {
        "talk": lambda row: str(row["data"]),
        "to": lambda row: str(row["target_language"]),
        "profile": lambda row: str(row["profile"]),
        "reading / speaking": lambda row: f"{row['needed']:.2f}",
        "too fast": of_all("fast", ".0%"),
        "line too wide": of_all("wide", ".0%"),
        "shortest s": of_all("shortest", ".1f"),
        "longest s": of_all("longest", ".1f"),
        "overlaps": of_all("overlaps", ".0f"),
        "late, 95% s": of_all("late_p95", ".1f"),
    }
    return table([{**each[WRITERS[0]], **each} for each in found.values()], columns)


def hybrids(rows: Sequence[Row]) -> str:
    """Return sentences: which architectures go back, which are refused, and what drafts save."""
    tiny = [row for row in rows if "method" not in row]
    right = [row["model"] for row in tiny if row["goes_back"] == "anchors"]
    refused = [f"{row['model']} ({row['goes_back'].partition(': ')[2]})" for row in tiny if ": " in row["goes_back"]]
    found = [f"{listed(right)} go back correctly." if right else "", f"Refused: {listed(refused)}." if refused else ""]
    plain = {row["data"]: row for row in rows if row.get("method", "").startswith("ar,")}
    for name in ("ssbd", "redraft"):
        ours = [row for row in rows if re.match(rf"{name}\b(?! stop)", row.get("method", ""))]
        if ours:
            saved = span([plain[row["data"]]["passes"] / row["passes"] for row in ours], ".1f")
            more = span([row["passes"] / row["asked"] - 1 for row in ours], ".0%")
            found.append(f"With copies, `{name}` needs {more} more passes: {saved} times fewer than `ar`.")
    found += [_timed(data, list(group)) for data, group in groupby(_timed_rows(rows), key=lambda row: row["data"])]
    return " ".join(filter(None, found))


def _timed_rows(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if "milliseconds" in row]


def _timed(data: str, rows: Sequence[Row]) -> str:
    """Return a sentence on the time of an update on a model of a real shape."""
    times = [f"{row['milliseconds']:,.0f} ms with `{row['method'].partition(',')[0]}`" for row in rows]
    return f"On random weights in the shape of {rows[0]['shape']}, an update of `{data}` takes {listed(times)}."


def _gain(name: str, rows: Sequence[Row], plain: Mapping[tuple[str, ...], Row]) -> str:
    gains, over = ([row[field] for row in rows] for field in ("chrf_gain", "chrf_gain_over_ar"))
    better, worse = sum(row["chrf_gain_low"] > 0 for row in rows), sum(row["chrf_gain_high"] < 0 for row in rows)
    times = [row["milliseconds"] / plain[_cell_of(row)]["milliseconds"] for row in rows]
    return (
        f"*{name.capitalize()}* gains {fmean(gains):+.1f} chrF on average ({min(gains):+.1f} to {max(gains):+.1f}) "
        f"over no search, and {fmean(over):+.1f} over `ar`. It is better than no search beyond chance in {better} of "
        f"{len(rows)} cells and worse in {worse}, and a final caption takes {min(times):.1f} to {max(times):.1f} times "
        "as long."
    )


CHECKS = (
    Check(
        language_models.NAME,
        "A language model that was not made for Redraft",
        "What each method saves and retracts with a chat model.",
        {},
        (),
        language_models.REMARK,
        language_models.compared,
        overview=language_models.overview,
        command="redraft bench run language_model --model FILE --engine threads=1",
        read=language_models.rows,
    ),
    Check(
        "live",
        "Live captions with a model that may be too slow",
        "How late captions are when computing time counts, and how many updates are passed over.",
        LIVE,
        (),
        "A talk of ACL 60/60, as Moonshine recognises it, is replayed on a simulated clock: an update takes the "
        "processor time of one thread that it took here, and partial updates that arrive meanwhile are passed over. "
        "*Answers* are captions, with their lag behind the update. *First shown* and *for good* are the lags of words "
        "behind the voice, and *retracted* is words a minute. LocalAgreement is the "
        "[setting](../calm.md#other-settings) of `redraft`. In this replay nothing ends a search for a better final "
        "caption early; elsewhere the next sentence does.",
        language_models.kept_up,
    ),
    Check(
        "exact",
        "The same ids: ssbd and redraft without bias as ar, redraft as ssbd and as LocalAgreement",
        "Whether methods that must give the same ids do so, and whether rounding explains the exceptions.",
        EXACT,
        ("mismatches", "not explained by rounding"),
        "A mismatch is explained if the two tokens were as close as rounding can move them. With exact kernels there "
        "are none. With the kernels that `make` compiles, Q8_0 and Q4_K_M have none either, because a row is computed "
        "from its prefix alone, whatever else is in the pass (on processors with AVX2; "
        "for Q4_K_M not on AMD's with AVX-512, where llama.cpp is faster with a single token).",
        summed=True,
    ),
    Check(
        "listening",
        "Recognisers on real voices",
        "How many words recognisers get wrong, how late captions are, and what recognition costs.",
        LISTENING,
        ("CPU s per s of speech",),
        "The recording is the beginning of *A Tale of Two Cities*, read by a person, from the package moonshine-voice. "
        "The lag of a word runs from its end, as Whisper base found it, to the first caption (without translation, "
        "update) that keeps it. Translation is by the demo model, with a margin of 0. Both cores were busy with other "
        "work, to which recognition and translation had precedence. Whisper's weights are 8-bit integers.",
    ),
    Check(
        "kernels",
        "The time of a pass, by build of llama.cpp and format of the weights",
        "What our kernels for llama.cpp save, and which format is fastest.",
        KERNELS,
        (),
        "Processor time with one thread, time that passes with two. *ours* is the build that `make` compiles "
        "(`native/llama.cpp`). Weights in Q8_0 and Q5_0 are multiplied eight rows at a time (`q8_rows.h`), so that "
        "conversions and scales are shared by eight results; with VNNI, one instruction multiplies and adds, with "
        "AVX-512 for two tokens, and with AVX2 alone, products of Q5_0 are added in 16 bits. Weights in Q4_K and "
        "Q6_K are decoded once for all tokens of a pass (`k_rows.h`). Float weights are fetched in advance. "
        "Attention takes exponentials of whole registers, and tokens share the conversion of the cache to 32-bit "
        "floats (`attention_rows.h`). Matrices in Q4_0 do not change. In Q4_K_M, matrices whose width is no multiple "
        "of 256 are stored in Q5_0 and Q8_0. Rows of Zen 4 were measured with eight tokens in registers of AVX2 "
        "instead of sixteen. *With AMX* is the same build with llama.cpp's kernels for AMX, which ours leaves out: "
        "their rows depend on the others of a pass, and other libraries in the process can disturb them.",
    ),
    Check(
        "hybrids",
        "Models with recurrent layers",
        "Which architectures go back to an earlier token on llama.cpp, and what that costs.",
        HYBRIDS,
        (),
        "Tiny random models of all architectures that llama.cpp lists as recurrent or hybrid are opened, which tests "
        "them. What the sparse attention of Qwen4 leaves out depends on its place in the cache, so a context longer "
        "than it reads is refused. Below, the passes of two runs with the demo model are played again in a slot that "
        "goes back by copies, as if that model had recurrent layers: *requests* and *tokens* are passes, and the "
        "tokens that they read, where single tokens can be dropped, and *passes* and *tokens read* those with copies. "
        "The first updates of each are also timed on one thread, with random weights in the shape of a real model.",
        findings=hybrids,
    ),
    Check(
        "gpu",
        "The backend for transformers on a GPU",
        "What passes, updates and shared passes take on a GPU, and whether its ids are those of the CPU.",
        {},
        (),
        gpu.REMARK,
        gpu.findings,
        overview=gpu.overview,
        picture=gpu.picture,
    ),
    Check(
        "finals",
        "Final captions: how they are chosen",
        "Whether it pays to compare several translations of a final text.",
        FINALS,
        (),
        "Texts grow by two words an update. Partial captions are those of `redraft`; the final text of each segment "
        "was decoded in every way. *No search* is the method alone (`--option search=0`). *Search* is the default, "
        "with as much time as it needs: the method's output, the best of a beam of four and the exact output are "
        "compared. *Search in time* has the time of the default, in which large models search only what is doubtful. "
        "`ar` translates the final text from scratch. Intervals are paired. "
        "*ms* is the processor time of a final update on one thread. *changed* is the share of the last partial "
        "caption, in words or characters, that the final one does not begin with.",
        findings=finals,
        overview=_finals_page,
        read=_read_finals,
    ),
    Check(
        "subtitles",
        "Subtitles beside those of Whisper's writer",
        "How many subtitles are too fast to read, and how late they come.",
        {},
        (),
        "The words are the demo model's final captions of the demo talk, and the references of two talks of ACL 60/60, "
        "at the times of their sentences. *Reading / speaking* is the time that reading all of it takes at the "
        "[profile's speed](../streams.md#--output-srt-and---output-vtt), beside the length of the talk. A cue is "
        "*too fast* if it is shown for less than its reading time, and *late* if it begins after its first word. "
        "Figures are those of "
        "Redraft, of Whisper's writer of SRT by default, and of that with the profile's width and number of lines "
        "(`--max_line_width`, `--max_line_count`), which needs a time for each word: here its share of the sentence. "
        "Japanese translations of fluent English have more characters than the speed of the guides allows; only "
        "shorter translations would be slow enough.",
        findings=subtitles,
        overview=_subtitles_page,
        command="python -m redraft_bench.scripts.subtitles --whisper UTILS.PY",
    ),
)


def checks(results: Path) -> list[Check]:
    """Return the measurements that have results."""
    found = []
    for each in CHECKS:
        rows = each.read(results) if each.read else _rows(results / f"{each.name}.jsonl")
        if rows:
            found.append(replace(each, rows=rows))
    return found


def _rows(path: Path) -> list[Row]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def card(results: Sequence[Result]) -> str:
    """Return the model card's tables: quality on whole sentences, and what is lost of what people say."""
    rows = [row for result in results if result.bench == "quality" for row in result.rows]
    text = f"\n{table(rows, CARD)}\n{below(str(row['signature']) for row in rows)}\n"
    counted = [row for row in rows if row.get("empty") is not None]
    if not counted:
        return text
    columns = [COLUMNS[name] for name in LOSSES]
    cells = [
        [str(row["target_language"]), *(cell(row, name, each.form) for name, each in zip(LOSSES, columns, strict=True))]
        for row in counted
    ]
    return f"{text}{markdown_table(['to', *(each.heading for each in columns)], cells)}\n{LOST}\n"


def below(signatures: Iterable[str]) -> str:
    """Return folded signatures, and below them the processor, and models whose weights have changed since."""
    lines = list(dict.fromkeys(signatures))
    if not lines:
        return ""
    remark = f"Processor: {', '.join(processors(lines))}."
    if names := earlier(lines):
        remark += f" Measured on earlier weights of {' and '.join(names)}."
    text = "".join(f"`{line}`  \n" for line in lines)
    return folded(f"{len(lines)} signatures" if len(lines) > 1 else "Signature", text) + f"\n*{remark}*\n"


def processors(signatures: Iterable[str]) -> list[str]:
    """Return the processors that signatures name; earlier ones name none."""
    found = (re.search(r"processor:([^|]+)", line) for line in signatures)
    return sorted({match[1] if match else "not recorded" for match in found})


def earlier(signatures: Iterable[str]) -> list[str]:
    """Return the demo model files that signatures name with other weights than the shipped ones."""
    weights = {file: file_hash(shipped_path(name)) for name, file in SHIPPED.items()}
    found = set(re.findall(r"([\w.-]+)@([0-9a-f]+)", " ".join(signatures)))
    return sorted({name for name, seen in found if weights.get(name, seen) != seen})


def folded(words: str, text: str) -> str:
    """Return a folded section; its attribute makes the docs site parse it as Markdown, as GitHub does."""
    return f'<details markdown="1"><summary>{words}</summary>\n\n{text}\n</details>\n'


def table(rows: Sequence[Row], columns: Columns) -> str:
    """Return a table of rows, without empty columns."""
    filled = {name: cells for name, fill in columns.items() if any(cells := [fill(row) for row in rows])}
    return markdown_table([*filled], [*zip(*filled.values(), strict=True)])


def _summed(rows: Sequence[Row]) -> list[Row]:
    """Return rows with sums over languages of what was counted."""
    found: dict[tuple[str, ...], Row] = {}
    for row in rows:
        key = tuple(fill(row) for name, fill in EXACT.items() if name not in _COUNTED)
        before = found.get(key, dict.fromkeys(_COUNTED.values(), 0))
        found[key] = {**row, **{name: before[name] + row[name] for name in _COUNTED.values()}}
    return list(found.values())
