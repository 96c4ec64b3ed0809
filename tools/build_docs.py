"""Write what is made from the code: pages and tables of the documentation, and what the server sends about its API.

python -m tools.build_docs           write them
python -m tools.build_docs --check   fail where they are out of date
"""

from __future__ import annotations

import argparse
import inspect
import io
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from types import SimpleNamespace
from typing import Any

import click
from pydantic import TypeAdapter
from starlette.routing import Route, WebSocketRoute

from redraft import protocol
from redraft.backends.options import OPTIONS, HfOptions, LlamaOptions, RemoteOptions, taken_by
from redraft.captions.events import Failure
from redraft.captions.formats.read import read_lines
from redraft.cli.main import cli
from redraft.cli.shared.stream import OTHERS, other_format
from redraft.decoding.method import COMMON, Choice, Method, Option
from redraft.decoding.methods import all_methods, get_method
from redraft.protocol.codes import CODES, Refused, tag_of
from redraft.serve.http.compat import BUILT_IN
from redraft.serve.http.compat.deepl import DeepLRequest
from redraft.serve.http.compat.dialect import Body
from redraft.serve.http.compat.libretranslate import LibreTranslateRequest
from redraft.serve.http.compat.openai import ONLY_TRANSLATES, ChatRequest, CompletionRequest, ResponseRequest
from redraft.serve.http.endpoints import OPERATIONS
from redraft.serve.http.pages import API
from redraft.serve.http.sockets import live, watch, watch_room
from redraft.serve.settings import ServeSettings
from redraft.speech import dialect
from redraft.speech.registry import all_recognisers
from redraft_bench.eval.table import markdown_table
from tools import api
from tools.reference import names_table

ROOT = Path(__file__).resolve().parents[1]

#: Columns of a help text.
WIDTH = 100
#: The command with the most options that others have too.
MAIN = "redraft translate"
GENERATED = "<!-- Made from the code by `make docs`; changes here are lost. -->"

PAPERS = """\
## Papers

Please cite these papers for their methods.

- **SSBD v2**: Linxiao Zeng, Haoyun Deng, Kangyuan Shu, Shizhen Wang, 2025: *Self-Speculative Biased Decoding for Faster
  Live Translation*; second version *... for Faster Re-translation* ([arXiv](https://arxiv.org/abs/2509.21740))
- **AASD**: Jikai Wang, Zhenxu Tian, Juntao Li, Qingrong Xia, Xinyu Duan, Zhefeng Wang, Baoxing Huai, Min Zhang:
  *Alignment-Augmented Speculative Decoding with Alignment Sampling and Conditional Verification*
- **Parallel decoding**: Andrea Santilli, Silvio Severino, Emilian Postolache, Valentino Maiorca, Michele Mancusi,
  Riccardo Marin, Emanuele Rodolà, 2023: *Accelerating Transformer Inference for Translation via Parallel Decoding*
  ([arXiv](https://arxiv.org/abs/2305.10427))
- **BiLD**: Sehoon Kim, Karttikeya Mangalam, Suhong Moon, Jitendra Malik, Michael W. Mahoney, Amir Gholami, Kurt
  Keutzer, 2023: *Speculative Decoding with Big Little Decoder* ([arXiv](https://arxiv.org/abs/2302.07863))
- **Leviathan et al. 2023**: *Fast Inference from Transformers via Speculative Decoding*
  ([arXiv](https://arxiv.org/abs/2211.17192))
- **Chen et al. 2023**: *Accelerating Large Language Model Decoding with Speculative Sampling*
  ([arXiv](https://arxiv.org/abs/2302.01318))
- **Saxena 2023**: *Prompt Lookup Decoding* ([code](https://github.com/apoorvumang/prompt-lookup-decoding))
- **LLMA**: Yang et al. 2023, *Inference with Reference: Lossless Acceleration of Large Language Models*
  ([arXiv](https://arxiv.org/abs/2304.04487))

What is shown of a partial translation builds on these:

- **Arivazhagan et al. 2020**: *Re-Translation Strategies for Long Form, Simultaneous, Spoken Language Translation*
  ([arXiv](https://arxiv.org/abs/1912.03393))
- **Yao and Haffari 2020**: *Dynamic Masking for Improved Stability in Online Spoken Language Translation*
  ([arXiv](https://arxiv.org/abs/2006.00249))
- **Liu et al. 2020** (LocalAgreement): *Low-Latency Sequence-to-Sequence Speech Recognition and Translation by Partial
  Hypothesis Selection* ([arXiv](https://arxiv.org/abs/2005.11185))
- **Polák et al. 2022**: *CUNI-KIT System for Simultaneous Speech Translation Task at IWSLT 2022*
  ([arXiv](https://arxiv.org/abs/2204.06028))
"""


def documents(root: Path = ROOT) -> dict[Path, str]:
    """Return path -> text of every page that is generated from the code, completely or in part."""
    reference = root / "docs" / "api" / "README.md"
    models = (root / "docs" / "models.md").read_text(encoding="utf-8")
    serving = (root / "docs" / "serving.md").read_text(encoding="utf-8")
    protocol = (root / "docs" / "protocol.md").read_text(encoding="utf-8")
    return {
        root / "docs" / "cli.md": cli_page(),
        root / "docs" / "methods.md": methods_page(),
        root / "docs" / "contracts.md": contracts_page(),
        reference: between(reference.read_text(encoding="utf-8"), "names", names_table(root)),
        root / "docs" / "models.md": between(models, "engine", engine_table()),
        root / "docs" / "serving.md": between(serving, "settings", settings_table()),
        root / "docs" / "protocol.md": between(
            between(protocol, "codes", codes_table()), "messages", messages_tables()
        ),
        **{root / API.relative_to(ROOT) / name: text for name, text in api.files().items()},
    }


def between(page: str, name: str, text: str) -> str:
    """Return the page with ``text`` between its marks ``<!-- name -->`` and ``<!-- /name -->``.

    Raises:
        ValueError: the page does not have each mark exactly once, in this order.
    """
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise ValueError(f"the page must hold {begin} and, after it, {end}, each once")
    head, rest = page.split(begin)
    return f"{head}{begin}\n{text}{end}{rest.split(end)[1]}"


def messages_tables() -> str:
    """Return a table of all messages for each direction; optional fields have a question mark."""
    parts = []
    for title, kinds in (("From the client", protocol.CLIENT), ("From the server", protocol.SERVER)):
        rows = []
        for kind in kinds:
            schema = TypeAdapter(kind).json_schema()
            needed = schema.get("required", ())
            names = (f"`{name}{'' if name in needed else '?'}`" for name in schema["properties"] if name != "type")
            summary = (kind.__doc__ or "").partition("\n")[0].removesuffix(".").replace("``", "`").replace("  ", " ")
            rows.append((f"`{tag_of(kind)}`", ", ".join(names), summary))
        parts.append(f"**{title}:**\n\n{markdown_table(('message', 'fields', 'what it is'), rows)}")
    return "\n".join(parts)


def settings_table() -> str:
    """Return a table of all settings of the server with their ranges."""
    rows = []
    schemas = ServeSettings.model_json_schema()["properties"]
    for name, setting in ServeSettings.model_fields.items():
        if setting.default_factory is not None:
            default = "that of `redraft models use`"
        else:
            default = "" if setting.default is None else f"`{json.dumps(setting.default)}`"
        rows.append((f"`{name}`", default, _range(schemas[name]), setting.description or ""))
    return markdown_table(("setting", "default", "allowed", "what it is"), rows)


def _range(schema: Mapping[str, float]) -> str:
    """Return the numbers that a JSON schema allows; empty for other types."""
    if "exclusiveMinimum" in schema:
        return f"above {schema['exclusiveMinimum']:g}, at most {schema['maximum']:.16g}"
    return f"{schema['minimum']:.16g} to {schema['maximum']:.16g}" if "minimum" in schema else ""


def short(words: str) -> str:
    """Return what is allowed without the words that the range already expresses."""
    return re.sub(r"^a (?:whole )?number (?:from )?", "", words).replace(" and at most", ", at most")


def codes_table() -> str:
    """Return a table of all error codes of the server."""
    return markdown_table(("code", "what it means"), [(f"`{name}`", code.means) for name, code in CODES.items()])


def cli_page() -> str:
    """Return all help texts, without ``--help`` itself; options that another command explains are only named."""
    parts = ["# Command line\n", f"{GENERATED}\n", "Every command takes `--help`.\n"]
    first: dict[str, str] = {}
    texts = dict(help_texts(cli, "redraft", None))
    for section in texts[MAIN].split("\n\n"):
        _without_known(section, MAIN, first)
    for path, text in texts.items():
        sections = [_without_known(each, path, first) for each in text.split("\n\n")]
        parts += [f"## {path}\n\n```text", "\n\n".join(each for each in sections if each), "```\n"]
    return "\n".join(parts)


def _without_known(section: str, path: str, first: dict[str, str]) -> str:
    """Return a section of a help text with the names of options that another command explains.

    Args:
        section: the section; only those whose lines begin with options change.
        path: the command.
        first: option with its help text -> the first command that has it; is added to.
    """
    heading, *options = re.split(r"\n(?=  -)", section)
    if not options:
        return section
    shown, known = [heading], dict[str, list[str]]()
    for option in options:
        words = " ".join(option.split())
        name = re.findall(r"--[\w-]+", words)[0]
        if name == "--help":
            continue
        if (command := first.setdefault(words, path)) != path:
            known.setdefault(command, []).append(name)
        else:
            shown.append(option)
    for command, names in known.items():
        shown += wrap(f"{', '.join(names)}: as in `{command}`", WIDTH, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(shown) if shown[1:] else ""


def help_texts(command: click.Command, name: str, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    """Yield name and help text of a command and of all commands below it."""
    context = command.make_context(name, [], parent, resilient_parsing=True, terminal_width=WIDTH, color=False)
    yield context.command_path, "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None and not found.hidden:
                yield from help_texts(found, below, context)


#: Requests that are refused: path, body, and the fields that are refused, each on its own.
REFUSED: tuple[tuple[str, type[Body], dict[str, Any], dict[str, Any]], ...] = (
    (
        "/v2/translate",
        DeepLRequest,
        {"text": ["Hi"], "target_lang": "DE"},
        {**dict.fromkeys(DeepLRequest.unable, "x"), "formality": "more", "split_sentences": "2"},
    ),
    ("/translate", LibreTranslateRequest, {"q": "Hi", "source": "en", "target": "de"}, {"format": "html"}),
    (
        "/v1/chat/completions",
        ChatRequest,
        {"messages": [{"role": "user", "content": "Hi"}]},
        {
            **dict.fromkeys(ChatRequest.unable, "x"),
            "n": 2,
            "response_format": {"type": "json_object"},
            "messages": [{"content": [{"type": "image_url"}]}],
        },
    ),
    ("/v1/completions", CompletionRequest, {"prompt": "Hi"}, {"stream": True}),
    ("/v1/responses", ResponseRequest, {"input": "Hi"}, {"stream": True}),
)


#: Input of `redraft translate` (`redraft.cli.shared.options.INPUTS`) -> its contract.
CONTRACTS = {
    "text": "Text, whatever its lines: a sentence ends at its full stop, question mark or exclamation mark, or at an "
    "empty line; with `--no-sentences`, at the end of its line. The default for a file.",
    "lines": "Each line is the whole text so far and replaces the one before; an empty line ends the utterance; after "
    "a carriage return, the line begins again, and its end ends the utterance. The default for a pipe.",
    "jsonl": "Each line is a JSON object with `utterance`, `seq` and `text`, and perhaps other fields.",
    "simulstreaming": "The rows of SimulStreaming, unchanged.",
    "NAME:URL": "What a recognition server sends to every connection: `vosk:ws://HOST`, `sherpa:ws://HOST`.",
}


def contracts_page() -> str:
    """Return tables of everything that is accepted with its contract, and of what is refused with its message."""
    inputs = [(f"`{name}`", contract) for name, contract in CONTRACTS.items()]
    examples = [each.example.encode("latin-1") for each in OTHERS]
    refused = [(_code(each), f"... has {other_format(each, 'lines')}") for each in (*examples, b"ID3\3")]
    (ungrown,) = (each.message for each in read_lines(io.BytesIO(b"One.\nTwo.")) if isinstance(each, Failure))
    only = ONLY_TRANSLATES.format(example="redraft-demo/de")
    return "\n".join(
        [
            "# What Redraft accepts\n",
            f"{GENERATED}\n",
            "Each contract is a sentence that you can rely on. What is plainly in another format is refused by name.\n",
            "## Inputs\n\nOf `redraft translate`, with `--input`; [Input and output](streams.md) has examples.\n",
            markdown_table(("input", "contract"), inputs),
            "## Refused inputs\n\nInput that begins like one of these, perhaps after lines of a log, is refused:\n",
            markdown_table(("beginning", "message"), refused),
            f"A list of texts in a pipe is not refused, but it is an error: *{ungrown}*.\n",
            "## Endpoints\n\nOf `redraft serve`; those of other services need [`--compat`](compat.md).\n"
            "`/docs` of a server describes the fields of its own.\n",
            markdown_table(("request", "service", "contract"), list(_endpoints())),
            "## Refused requests\n\nUnknown fields are ignored. Fields that would change the answer are refused:\n",
            markdown_table(("request", "field", "message"), list(_refused_requests())),
            f"With a model that only translates, any other name in `model` is refused: *{only}*.\n",
            "## Protocols\n\nWebsockets of `redraft serve`; [the API](protocol.md) has their messages.\n",
            markdown_table(("address", "service", "contract"), list(_protocols())),
            "What is no message of the protocol is answered with an error: its code, a sentence, and the field.\n",
            "Redraft itself reads what these recognition servers send:\n",
            markdown_table(("server", "address"), [(f"`{name}`", each.SUMMARY) for name, each in _servers().items()]),
        ]
    )


def _servers() -> Mapping[str, Any]:
    """Return the recognition servers that Redraft knows, without those of plug-ins."""
    found = all_recognisers(dialect.ENTRY_POINT_GROUP)
    return {name: module for name, module in found.items() if module.__name__.startswith("redraft.")}


def _contract(endpoint: Any) -> str:
    """Return the first paragraph of a docstring, as the page writes it."""
    return " ".join(inspect.cleandoc(endpoint.__doc__).partition("Raises `")[0].split())


def _compat() -> Iterator[tuple[str, Route | WebSocketRoute]]:
    """Yield the routes of imitated APIs with the name of their service."""
    names = {"deepl": "DeepL", "libretranslate": "LibreTranslate", "openai": "OpenAI", "alignatt-mt": "WhisperLiveKit"}
    admission = SimpleNamespace(service=SimpleNamespace(chat=None))
    hub: Any = SimpleNamespace(settings=SimpleNamespace(openai_prompt=None), admission=admission)
    for name, service in names.items():
        for route in BUILT_IN[name](hub):
            if isinstance(route, Route | WebSocketRoute):
                yield service, route


def _endpoints() -> Iterator[tuple[str, str, str]]:
    """Yield a row for every endpoint."""
    for method, path, endpoint in OPERATIONS:
        yield f"`{method} {path}`", "Redraft", _contract(endpoint)
    for service, route in _compat():
        if isinstance(route, Route):
            (method,) = (route.methods or set()) - {"HEAD"}
            yield f"`{method} {route.path}`", service, _contract(route.endpoint)


def _protocols() -> Iterator[tuple[str, str, str]]:
    """Yield a row for every websocket."""
    paths = {"/v1/live": live, "/v1/watch/{session}": watch, "/v1/rooms/{room}/watch": watch_room}
    for path, endpoint in paths.items():
        yield f"`{path}`", "Redraft", _contract(endpoint)
    for service, route in _compat():
        if isinstance(route, WebSocketRoute):
            yield f"`{route.path}`", service, _contract(route.endpoint)


def _refused_requests() -> Iterator[tuple[str, str, str]]:
    """Yield a row for every field that is refused, with the message that a client gets."""
    for path, kind, body, wrong in REFUSED:
        for name, value in wrong.items():
            try:
                kind.read({**body, name: value})
            except Refused as refused:
                yield f"`{path}`", f"`{json.dumps({name: value})}`", refused.sentence
            else:
                raise ValueError(f"{path} accepts {name}")


def _code(data: bytes) -> str:
    """Return bytes as code for a cell of a table, with escapes for what cannot be printed."""
    text = data.decode("latin-1").encode("unicode_escape").decode().replace("\\\\", "\\").replace("|", "\\|")
    return f"`{text.rstrip()}`"


def engine_table() -> str:
    """Return a table of the options of the engine, with the backends that have them."""
    kinds = {"GGUF": LlamaOptions, "transformers": HfOptions, "servers": RemoteOptions}
    rows = []
    for each in OPTIONS.values():
        name, default, allowed, words = _option_row(each)
        having = ", ".join(where for where, kind in kinds.items() if each.name in taken_by(kind))
        rows.append((name, default, allowed, having, words))
    return markdown_table(("option", "default", "allowed", "models", "what it is"), rows)


def our_methods() -> list[Method]:
    """Return the built-in methods, without those of installed plug-ins."""
    return [method for method in all_methods().values() if method.build.__module__.split(".")[0] == "redraft"]


def methods_table() -> str:
    """Return a table of all methods, with links to their options."""
    rows = [(_linked(each), each.drafter, each.rule, each.paper) for each in our_methods()]
    return markdown_table(("method", "drafter", "acceptance rule", "paper"), rows)


def _linked(method: Method) -> str:
    return f"[`{method.name}`](#{method.name})"


def methods_page() -> str:
    """Return a section for every method."""
    parts = [
        "# Methods\n",
        f"{GENERATED}\n",
        "A method is a *drafter*, which proposes tokens, and an *acceptance rule*, which decides how many of them to\n"
        "keep. Choose one with `--method` and set its options with `--option NAME=VALUE`:\n\n"
        "```sh\nredraft translate talk.txt --to de --method ssbd --option beta=0.3\n```\n\n"
        "`redraft methods` prints this list, including the methods of installed plug-ins.\n"
        "[Development](development.md#adding-a-method) shows how to add one.\n",
        methods_table(),
        "Methods with a small model take it from `--draft-model`. Some methods need more from the backend:\n\n"
        "- *prompt rows* (predictions for the tokens of the prompt) and *trees* (several drafts in one pass):\n"
        "  llama.cpp, and transformers with decoder-only models\n"
        "- *early exit* (predictions of the first layers): transformers\n",
        "Every method also has these options; `redraft` has other defaults for what is shown, "
        f"{' and '.join(f'`{name}={value}`' for name, value in get_method('redraft').defaults.items())}:\n",
        markdown_table(
            ("option", "default", "allowed", "what it is"),
            [_option_row(each) for each in get_method("ar").all_options if each.name in COMMON],
        ),
    ]
    seen: dict[tuple[str, ...], str] = {}
    for method in our_methods():
        parts.append(f"## {method.name}\n\n{method.summary[0].upper()}{method.summary[1:]}.\n")
        facts = list(_shared(method, seen))
        if method.needs:
            facts.insert(0, f"- Needs: {', '.join(sorted(each.value for each in method.needs))}")
        if facts:
            parts.append("\n".join(facts) + "\n")
        if new := [row for row in map(_option_row, method.options) if row not in seen]:
            parts.append(markdown_table(("option", "default", "allowed", "what it is"), new))
            seen |= dict.fromkeys(new, method.name)
    return "\n".join([*parts, PAPERS])


def _option_row(option: Option | Choice) -> tuple[str, str, str, str]:
    return f"`{option.name}`", f"{option.default}", short(option.allowed), option.help


def _shared(method: Method, seen: Mapping[tuple[str, ...], str]) -> Iterator[str]:
    """Yield a line for every earlier method of the page that has options of this one."""
    shared: dict[str, list[str]] = {}
    for row in map(_option_row, method.options):
        if row in seen:
            shared.setdefault(seen[row], []).append(row[0])
    for name, options in shared.items():
        yield f"- As in [{name}](#{name}): {', '.join(options)}"


def stale(root: Path = ROOT) -> list[str]:
    """Return the pages that are out of date."""
    wanted = documents(root)
    return [
        str(path.relative_to(root))
        for path, text in wanted.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


def write(root: Path = ROOT) -> None:
    """Write all pages."""
    for path, text in documents(root).items():
        path.write_text(text, encoding="utf-8", newline="\n")


def main(arguments: Sequence[str] | None = None) -> str | None:
    """Run the command line; return an error message, or None."""
    parser = argparse.ArgumentParser(description="Write what the documentation takes from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where pages are out of date")
    if parser.parse_args(arguments).check:
        return f"docs: out of date, run `make docs`: {', '.join(pages)}" if (pages := stale()) else None
    write()
    return None


if __name__ == "__main__":
    sys.exit(main())
