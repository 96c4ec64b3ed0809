"""Settings of the server: from a TOML file, from the environment (``REDRAFT_SERVE_PORT=...``), and from flags.

Flags take precedence over the environment, and the environment over the file.
"""

from __future__ import annotations

import ipaddress
import json
import os
import tomllib
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Literal, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from redraft.backends.options import checked
from redraft.errors import OptionError
from redraft.models.hub import default_model

_PREFIX = "REDRAFT_SERVE_"


class ServeSettings(BaseModel):
    """The operator's settings, with their allowed values."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = Field("127.0.0.1", description="address to listen on; needs API keys unless it is a loopback address")
    port: int = Field(8765, ge=0, le=65535, description="port; 0 picks a free one")
    keys: Path | None = Field(None, description="file of hashed API keys; `redraft serve --new-key NAME` adds one")
    tls_cert: Path | None = Field(None, description="file with a TLS certificate and its chain, to serve https")
    tls_key: Path | None = Field(None, description="file with its key, if that is not in the same file")
    tls: Literal["self-signed"] | None = Field(
        None, description="`self-signed`: serve https with a certificate of the server's own; browsers ask once"
    )
    origins: tuple[str, ...] = Field((), description="other web origins whose pages may use the server; `*` for all")
    hosts: tuple[str, ...] = Field((), description="other host names that the server answers to")
    rooms: dict[str, tuple[str, ...]] = Field(
        {},
        description="rooms, each with the names of the keys that may use it (an empty list: any key); without rooms, "
        "any name works",
    )

    model: str = Field(
        default_factory=default_model,
        description="name from `redraft models`, or a GGUF file; transformers: hf:NAME, hf:FILE.gguf or a folder; "
        "server: vllm:URL or sglang:URL",
    )
    draft_model: str | None = Field(None, description="small model for methods that need one")
    methods: tuple[str, ...] = Field(
        ("redraft", "ssbd", "ar"),
        min_length=1,
        description="methods that clients may choose, the default first",
    )
    template: str | None = Field(None, description="prompt template; the model's own if not set")
    prompt: Path | None = Field(None, description="file with a prompt of your own, instead of a template")
    slots: int = Field(32, ge=1, le=255, description="target languages, over all sessions, that keep a model cache")
    engine: dict[str, float | str] = Field(
        {}, description="options of the engine by name, such as `threads`; docs/models.md lists them"
    )
    engines: int = Field(
        0,
        ge=0,
        le=64,
        description="number of engines; 0: one per core for small models, one per slot for models on a server, else 1",
    )

    sessions: int = Field(128, ge=1, le=10_000, description="maximum number of sessions")
    sessions_per_address: int = Field(64, ge=1, le=10_000, description="maximum sessions per address")
    languages: int = Field(256, ge=1, le=10_000, description="maximum target languages of all sessions together")
    busy: float = Field(
        0.85, gt=0, le=1000, description="engine load above which new sessions are refused; 1000 admits all"
    )
    targets: int = Field(8, ge=1, le=64, description="maximum target languages per session")
    viewers: int = Field(
        5_000, ge=0, le=100_000, description="maximum viewers of a session or a room, overlays included"
    )

    fanout: str | None = Field(
        None,
        description="address of Redis, through which every replica serves the viewers of all sessions; needs the "
        "package redraft-fanout",
    )
    fanout_password: str | None = Field(
        None, repr=False, description="password of that Redis; best set in the environment"
    )
    viewers_only: bool = Field(False, description="serve only viewers of sessions on other replicas; loads no model")

    message_bytes: int = Field(65_536, ge=1024, le=1 << 24, description="maximum length of a message or request body")
    updates_per_second: float = Field(50, gt=0, le=10_000, description="updates accepted per session and second")
    starts_per_second: float = Field(5, gt=0, le=10_000, description="new sessions per address and second")
    keep_seconds: float = Field(120, ge=0, le=86_400, description="seconds that a session is kept without a connection")
    transcript_seconds: float = Field(
        3600,
        ge=0,
        le=604_800,
        description="seconds for which a transcript can be downloaded after its session; the server keeps 1000 at most",
    )
    drain_seconds: float = Field(20, ge=0, le=600, description="seconds to finish captions in progress after SIGTERM")

    recogniser: str | None = Field(
        None, description="speech recogniser for clients' audio, such as `moonshine`; if not set, audio is refused"
    )
    punctuation: str | None = Field(None, description="folder of a punctuation model for the recogniser")
    sentences: bool = Field(True, description="cut recognised speech into sentences instead of at pauses")
    listeners: int = Field(4, ge=1, le=1000, description="maximum sessions with speech recognition at a time")

    compat: tuple[str, ...] = Field(
        (), description="services to imitate: `alignatt-mt`, `deepl`, `libretranslate`, `openai`"
    )
    openai_prompt: str | None = Field(
        None, description="prompt of a tool for OpenAI's API, with `{text}` and `{target}`, to translate {text} instead"
    )

    transcripts: Path | None = Field(
        None, description="folder for transcripts; if not set, they are kept in memory only"
    )
    log_text: bool = Field(False, description="allow transcript text in logs")

    @property
    def key_file(self) -> Path | None:
        """The file of API keys; None if the server cannot start sessions, which needs no keys."""
        return None if self.viewers_only else self.keys

    @property
    def local(self) -> bool:
        """Whether only this machine can connect."""
        return self.host == "localhost" or is_loopback(self.host)


def ip_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return an IP address; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether an IP address is this machine's own; false for names."""
    return (found := ip_of(host)) is not None and found.is_loopback


def load(file: Path | None = None, **flags: Any) -> ServeSettings:
    """Load the settings.

    Args:
        file: TOML file; None reads no file.

    Raises:
        OptionError: a setting is unknown or out of range, the file cannot be read, or a server for others has no keys.
    """
    values, places = dict[str, Any](), dict[str, str]()
    for name, value, place in _given(file, flags):
        if name not in ServeSettings.model_fields:
            nearest = get_close_matches(name, ServeSettings.model_fields, 1)
            known = f"the nearest is {nearest[0]}" if nearest else f"there are {', '.join(ServeSettings.model_fields)}"
            raise OptionError(f"{place or repr(name)} is not a setting: {known}")
        joined = isinstance(value, dict) and isinstance(values.get(name), dict)
        values[name], places[name] = {**values[name], **value} if joined else value, place
    try:
        found = ServeSettings(**values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        problem = f": {first['msg'].partition(', unable to')[0]}, not {first['input']!r}"
        raise (OptionError(places[name] + problem) if places[name] else OptionError(problem, name)) from None
    checked(found.engine)
    if found.viewers_only and (found.fanout is None or found.compat):
        problem = "needs fanout, the address of Redis" if found.fanout is None else "cannot be combined with compat"
        raise OptionError(problem, "viewers_only")
    if not found.local and found.keys is None and not found.viewers_only:
        raise OptionError(
            f"host {found.host!r} lets other machines connect, which needs API keys: make one with "
            "`redraft serve --keys FILE --new-key NAME`, or listen on 127.0.0.1"
        )
    if found.transcripts is not None:
        try:
            with TemporaryFile(dir=found.transcripts) as written:
                written.write(b" ")
        except OSError as error:
            problem = f"must be an existing folder to write to, and {str(found.transcripts)!r} is not: {error}"
            raise OptionError(problem, "transcripts") from None
    return found


def _given(file: Path | None, flags: dict[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """Yield name, value and place of what is set, each source before those that override it; flags have no place."""
    if file is not None:
        try:
            read = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise OptionError(f"settings file {str(file)!r} cannot be read, or is not valid TOML: {error}") from None
        for name, value in read.items():
            yield name, value, f"{name} in {str(file)!r}"
    for variable, value in os.environ.items():
        if variable.upper().startswith(_PREFIX):
            name, place = variable[len(_PREFIX) :].lower(), f"{variable} in the environment"
            field = ServeSettings.model_fields.get(name)
            if field is not None and get_origin(field.annotation) in (tuple, dict):
                try:
                    value = json.loads(value)
                except ValueError as error:
                    raise OptionError(f"{place}: lists and objects must be JSON: {error}") from None
            yield name, value, place
    yield from ((name, value, "") for name, value in flags.items() if value is not None)
