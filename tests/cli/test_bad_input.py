"""Everything that users can get wrong: one clear sentence each, and nothing lost before or after it.

Nothing here depends on what the model writes; runs are cut at a few tokens, which is itself reported as a failure.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from redraft.models import shipped_path
from tests.cli.conftest import Run
from tests.cli.refusals import RUN, T, check_refusal, events, final
from tests.gguf_models import write_encoder_decoder

BAD = [
    (["wonder"], ["'wonder'", "demo, translate, listen, serve, generate, models, methods, transcript, doctor"]),
    (["--bad"], ["'--bad'", "redraft --help"]),
    (["translate"], ["--to"]),
    (["translate", "--to", "xx"], ["--to 'xx'", "BCP 47", "zh-CN"]),
    (["translate", "--to", ""], ["--to ''", "BCP 47"]),
    (["translate", "--to", "zh", "--to", "zh-CN"], ["target languages 'zh' and 'zh-CN' are the same", "leave one out"]),
    (["translate", "--to", "de,ja"], ["--to 'de,ja'", "BCP 47", "for each language"]),
    (["translate", "--to", "German Japanese"], ["--to 'German Japanese'", "for each language"]),
    ([*T, "--to", "tlhh"], ["--to 'tlhh'", "BCP 47"]),
    ([*T, "--from", "mul"], ["--from 'mul'", "BCP 47"]),
    ([*T, "--from", "auto", "--from", "en"], ["--from: auto means any language"]),
    ([*T, "--from", "en", "--from", "English"], ["source languages 'en' and 'English' are the same"]),
    ([*T, "--outptu", "srt"], ["'--outptu'", "did you mean", "'--output'"]),
    ([*T, "--mask-k", "3"], ["No such option '--mask-k' (see redraft translate --help)"]),
    (
        [*T, "--engine", "dtype=bfloat16"],
        ["redraft: --engine dtype is not for GGUF models", "its options: context_length"],
    ),
    ([*T, "a.txt", "b.txt"], ["b.txt"]),
    ([*T, "--option", "beta=1.5"], ["redraft: beta must be", "from 0 to 1", "1.5"]),
    ([*T, "--option", "beta=0.2", "--method", "ar"], ["method 'ar' has no option 'beta'", "agree"]),
    ([*T, "--method", "magic"], ["method 'magic'", "ar, cd, ssbd"]),
    ([*T, "--option", "beta"], ["--option", "NAME=VALUE", "'beta'"]),
    ([*T, "--option", "beta=much"], ["beta", "from 0 to 1", "'much'"]),
    ([*T, "--option", "beta=2"], ["beta", "from 0 to 1", "not 2"]),
    ([*T, "--option", "floor=nan"], ["floor", "from 0 to 1", "nan"]),
    ([*T, "--option", "depth=1"], ["'redraft'", "'depth'", "beta, hidden_beta, floor"]),
    ([*T, "-o", "beta=0.1", "-o", "beta=0.3"], ["--option beta is given twice"]),
    ([*T, "--input", "xml"], ["--input", "'xml'", "'text', 'lines', 'jsonl'"]),
    ([*T, "--output", "xml"], ["--output", "'xml'", "'srt', 'vtt'"]),
    ([*T, "--output", "srt:film"], ["redraft: profile must be one of broadcast, web, cart, not 'film'"]),
    ([*T, "--output", "srt:web,start=ten"], ["redraft: profile must have start as a time such as 10:00:00", "'ten'"]),
    ([*T, "--output", "lines:web"], ["--output", "'lines:web'"]),
    ([*T, "--option", "betta=1"], ["no option 'betta'; the nearest is beta; its options: beta, hidden_beta"]),
    ([*T, "--rate", "2", "--input", "jsonl"], ["--rate is for --input text", "leave it out with --input jsonl"]),
    ([*T, "--key", "secret"], ["--key is for a session on a server", "add --server"]),
    ([*T, "--room", "hall-1"], ["--room is for a session on a server", "add --server"]),
    ([*T, "--server", ""], ["redraft: --server must be an address such as http://127.0.0.1:8765, not ''"]),
    ([*T, "--server", "http://a", "--room", "Hall 1"], ["redraft: --room", "must be 1 to 63 lower-case letters"]),
    ([*T, "--term", "hull=Rumpf", "--term", "hull=Hülle"], ["redraft: --term 'hull' is given twice"]),
    ([*T, "--term", "hull=Rumpf", "--term", "German: hull=Hülle"], ["redraft: --term 'hull' is given twice"]),
    (["trans"], ["'trans'", "did you mean", "demo, translate, listen, serve, generate, models"]),
    ([*T, "--rate", "0"], ["--rate", "0.0", "x>0"]),
    ([*T, "--rate", "nan"], ["--rate", "nan", "x>0"]),
    ([*T, "--rate", "inf"], ["--rate", "inf", "x>0"]),
    ([*T, "--option", "first_sight=1.5"], ["redraft: first_sight must be a", "not 1.5"]),
    ([*T, "--option", "first_sight=-0.1"], ["redraft: first_sight must be a", "not -0.1"]),
    ([*T, "--option", "agree=0"], ["redraft: agree must be a", "not 0"]),
    ([*T, "--reading", "12"], ["--reading", "12", "16<=x<=80"]),
    ([*T, "--push", "teams:https://a"], ["redraft: --push must be zoom:URL or youtube:URL", "'teams:https://a'"]),
    ([*T, "--to", "ja", "--push", "zoom:https://a"], ["--push must name one of the languages de, ja"]),
    ([*T, "--push", "ja=zoom:https://a"], ["--push must name one of the languages de,"]),
    ([*T, "--option", "mask_k=-1"], ["redraft: mask_k must be a", "not -1"]),
    ([*T, "--option", "max_tokens=0"], ["redraft: max_tokens must be a", "not 0"]),
    ([*T, "--option", "context=-1"], ["redraft: context must be a", "not -1"]),
    ([*T, "--engine", "context_length=15"], ["redraft: context_length must be", "15", "from 16 to"]),
    ([*T, "--engine", "threads=-1"], ["redraft: threads must be", "-1", "from 0 to 1024"]),
    ([*T, "--engine", "gpu_layers=-2"], ["redraft: gpu_layers must be", "-2", "from -1 to"]),
    ([*T, "--term", "hull"], ["--term", "TERM=TRANSLATION", "'hull'"]),
    ([*T, "--term", "=Rumpf"], ["redraft: --term must be TERM=TRANSLATION or", "'=Rumpf'"]),
    ([*T, "--term", "de:=Rumpf"], ["redraft: --term must be TERM=TRANSLATION or", "'de:=Rumpf'"]),
    ([*T, "--term", "Deck 5: hull=Rumpf"], ["redraft: --term 'Deck 5'", "BCP 47"]),
    ([*T, "--term", "ja:hull=Rumpf"], ["redraft: --term must name one of the languages de, as in de:hull=Rumpf"]),
    ([*T, "--to", "ja", "--term", "hull=Rumpf"], ["redraft: --term must name one of the languages de, ja, as in de:"]),
    ([*T, "--to", "ja", "--term", "German:hull=Rumpf"], ["redraft: --term: this model", "use another model"]),
    ([*T, "--term", "hull=Rumpf"], ["redraft: --term: this model", "leave it out or use another model"]),
    ([*T, "--template", "x"], ["--template", "'x'", "'tower', 'qwen3', 'chat'"]),
    ([*T, "--template", "chat"], ["no chat template", "--prompt"]),
    ([*T, "/no/such/file"], ["input file '/no/such/file'", "No such file"]),
    ([*T, "/"], ["input file '/'", "Is a directory"]),
    (["demo", "--speed", "-1"], ["--speed", "-1.0", "x>=0"]),
    (["demo", "--speed", "inf"], ["--speed", "inf", "x>=0"]),
    (["demo", "--sentences", "x"], ["--sentences", "'x'", "integer"]),
    (["demo", "--to", "zh", "--to", "zh-Hans"], ["target languages 'zh' and 'zh-Hans' are the same"]),
    (["viz", "drafts", "--to", "de", "--out", "a.svg", "--lag", "2"], ["--lag is for --input text"]),
    (["demo", "--to", "xx"], ["--to 'xx'", "BCP 47"]),
    (["demo", "--method", "magic"], ["method 'magic'", "ar, cd, ssbd"]),
    (["doctor", "--engine", "threads=2000"], ["redraft: threads must be", "2000", "from 0 to 1024"]),
    ([*T, "--engine", "thread=2"], ["redraft: --engine has no option 'thread'; the nearest is threads;"]),
    ([*T, "--engine", "threads"], ["redraft: --engine must be NAME=VALUE, not 'threads'"]),
    ([*T, *("--engine", "threads=1") * 2], ["redraft: --engine threads is given twice"]),
    ([*T, "--engine", "flash_attn=yes"], ["redraft: flash_attn must be auto, on or off, not 'yes'"]),
    ([*T, "--engine", "tensor_split=1,x"], ["redraft: tensor_split must be numbers of 0 or more", "'1,x'"]),
    ([*T, "--engine", "exact=1", "--engine", "cache_type_k=q8_0"], ["redraft: --engine cache_type_k cannot be set"]),
    (["models", "get"], ["NAME", "qwen3-4b"]),
    (["models", "get", "gpt"], ["NAME", "'gpt'", "'qwen3-4b'"]),
]


class TestRefusals:
    @pytest.mark.parametrize(("arguments", "words"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
    def test_one_sentence_names_field_and_what_is_allowed(
        self, redraft: Run, arguments: list[str], words: list[str]
    ) -> None:
        check_refusal(redraft(*arguments, stdin=b"Hello.\n"), words)

    @pytest.mark.parametrize("arguments", [T, ["demo"], ["doctor"]], ids=lambda arguments: str(arguments[0]))
    def test_models(self, redraft: Run, tmp_path: Path, arguments: list[str]) -> None:
        whole = shipped_path("demo").read_bytes()[:1_000_000]
        for name, data in {"text": b"no model\n", "empty": b"", "begun": whole[:100], "cut": whole}.items():
            (tmp_path / f"{name}.gguf").write_bytes(data)
        write_encoder_decoder(tmp_path / "t5.gguf")
        bad = {
            "wonder": ["model 'wonder'", "demo", "`redraft models`"],
            "qwen3-4b": ["model 'qwen3-4b'", "redraft models get qwen3-4b"],
            str(tmp_path / "none.gguf"): ["none.gguf", "does not exist", "`redraft models`"],
            str(tmp_path): [str(tmp_path), "GGUF file is needed"],
            str(tmp_path / "text.gguf"): ["text.gguf", "is not a GGUF file"],
            str(tmp_path / "empty.gguf"): ["empty.gguf", "is not a GGUF file", "it is empty"],
            str(tmp_path / "begun.gguf"): ["begun.gguf", "cannot be loaded"],
            str(tmp_path / "cut.gguf"): ["cut.gguf", "cannot be loaded"],
            str(tmp_path / "t5.gguf"): ["t5.gguf", "encoder-decoder", "decoder-only"],
        }
        for name, words in bad.items():
            check_refusal(redraft(*arguments, "--model", name, stdin=b"Hello.\n"), words)


#: Lines of JSON Lines that cannot be used, with parts of the messages; `tests/captions/formats/test_read.py` has more.
BAD_LINES = [
    (b"{", "not valid JSON"),
    (b'{"utterance": 1, "seq": 0, "text": "\xff"}', "must be UTF-8"),
    (final("good 0"), "is final already"),
]


class TestStreams:
    def test_bad_lines_of_json(self, redraft: Run) -> None:
        lines = [b'{"utterance": "going on", "seq": 3, "text": "Good"}']
        for number, (bad, _) in enumerate(BAD_LINES):
            lines += [final(f"good {number}"), bad]
        lines.append(b'{"utterance": "going on", "seq": 4, "text": "Good morning.", "final": true}')
        done = redraft(*RUN, "--input", "jsonl", "--output", "jsonl", stdin=b"\n".join(lines))
        captions, errors = events(done)
        assert [row["utterance"] for row in captions if row["type"] == "final"] == [
            *(f"good {number}" for number in range(len(BAD_LINES))),
            "going on",
        ]
        assert [row["line"] for row in errors] == list(range(3, 2 * len(BAD_LINES) + 2, 2))
        assert all(part in error["message"] for error, (_, part) in zip(errors, BAD_LINES, strict=True))
        assert (done.status, done.err) == (1, "")

    def test_empty_input(self, redraft: Run) -> None:
        done = redraft(*RUN, "--output", "lines", stdin=b"\n \n")
        assert (done.status, done.out) == (1, "") and "the input is empty" in done.err

    def test_input_that_ends_early_keeps_its_last_utterance(self, redraft: Run) -> None:
        row = b'{"utterance": "1", "seq": 0, "text": "Hello.", "time": 2.0}'
        done = redraft(*RUN, "--input", "jsonl", "--output", "srt", stdin=row)
        assert done.out.startswith("1\n00:00:01,000 --> 00:00:02,000")

    def test_cues_follow_each_other_whatever_the_times(self, redraft: Run) -> None:
        rows = [
            {"utterance": str(number), "seq": 0, "text": "Good morning.", "final": True, "time": time}
            for number, time in enumerate((9, 2))
        ]
        stdin = "\n".join(map(json.dumps, rows)).encode()
        done = redraft(*T, "--engine", "threads=1", "--input", "jsonl", "--output", "srt", stdin=stdin)
        assert (done.status, done.err) == (0, "")
        assert re.findall("00:00:(.*) --> 00:00:(.*)", done.out) == [("08,000", "09,529")]  # both: the second is late

    def test_source_that_is_too_long(self, redraft: Run) -> None:
        text = b"One.\n\n" + b"far too long " * 50 + b"\n\nThree.\n"
        done = redraft(*RUN, "--engine", "context_length=16", "--output", "jsonl", stdin=text)
        captions, errors = events(done)
        assert [row["source"] for row in captions if row["type"] == "partial"] == ["One.", "Three."]
        assert {(row["utterance"].partition(".")[0], row["language"]) for row in errors} == {("2", "de")}
        assert all("the source is too long" in row["message"] for row in errors)
        assert all("context length is 16" in row["message"] for row in errors)

    @pytest.mark.parametrize(
        ("output", "begun"), [("srt", "1\n00:00:00,000 --> "), ("vtt", "WEBVTT\n\n1\n"), ("live", "")]
    )
    def test_errors_without_place(self, redraft: Run, output: str, begun: str) -> None:
        done = redraft(*RUN, "--input", "jsonl", "--output", output, stdin=final("1") + b"\n{\n" + final("2"))
        assert "redraft: line 2: the line is not valid JSON" in done.err
        assert done.out.startswith(begun) and len(done.out.splitlines()) >= 2
        assert "error" not in done.out

    def test_file_as_well_as_standard_input(self, redraft: Run, tmp_path: Path) -> None:
        (tmp_path / "talk.txt").write_bytes(b"One two three four.\n")
        done = redraft(*RUN, str(tmp_path / "talk.txt"), "--to", "ja", "--output", "jsonl")
        assert [(row["language"], row["source"], row["type"]) for row in events(done)[0]] == [
            ("de", "One two three", "partial"),
            ("ja", "One two three", "partial"),
            ("de", "One two three four.", "final"),
            ("ja", "One two three four.", "final"),
        ]
