"""Settings of the server: from a TOML file, from the environment (``REDRAFT_SERVE_PORT=...``), from flags.

Flags count before the environment, and that before the file.
"""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from redraft.errors import OptionError
from redraft.serve.batch import MOST_LANES, USUAL_LANES


class ServeSettings(BaseSettings):
    """Everything that the operator decides; each number has its range."""

    model_config = SettingsConfigDict(env_prefix="REDRAFT_SERVE_", extra="forbid", frozen=True)

    host: str = Field("127.0.0.1", description="address to listen on; any but this machine's own needs API keys")
    port: int = Field(8765, ge=0, le=65535, description="port; 0 takes a free one")
    keys: Path | None = Field(None, description="file of hashed API keys")
    origins: tuple[str, ...] = Field((), description="further web origins whose pages may connect")
    hosts: tuple[str, ...] = Field((), description="further names under which the server is reached")

    model: str = Field("demo", description="name or path of the model")
    draft_model: str | None = Field(None, description="small model, for methods that draft with one")
    methods: tuple[str, ...] = Field(("ssbd", "redraft", "ar"), min_length=1, description="allowed; the first is usual")
    template: str | None = Field(None, description="prompt template; as the model's file says, if not given")
    context_length: int = Field(512, ge=16, le=1 << 20, description="tokens of context of a slot")
    slots: int = Field(32, ge=1, le=255, description="translations whose cache is kept")
    threads: int = Field(0, ge=0, le=1024, description="CPU threads of an engine; 0 shares all cores")
    engines: int = Field(0, ge=0, le=64, description="engines side by side; 0 one a core for a small model, else 1")
    gpu_layers: int = Field(-1, ge=-1, le=10_000, description="layers on the GPU; -1 all that fit")
    exact: bool = Field(False, description="bit-equal batched and single passes; slower")
    pass_seconds: float = Field(0.1, gt=0, le=10, description="the longest that a pass may take, about")
    batch_lanes: int = Field(
        USUAL_LANES, ge=1, le=MOST_LANES, description="translations that an engine batches; 1 batches nothing"
    )

    sessions: int = Field(128, ge=1, le=10_000, description="the most sessions")
    sessions_per_address: int = Field(64, ge=1, le=10_000, description="the most sessions of one address")
    languages: int = Field(256, ge=1, le=10_000, description="the most target languages of all sessions together")
    busy: float = Field(
        0.85,
        gt=0,
        le=1000,
        description="share of the engine's time above which nobody new is admitted; 1000: all are",
    )
    targets: int = Field(8, ge=1, le=64, description="the most target languages of a session")
    max_tokens: int = Field(256, ge=1, le=65536, description="the most tokens of one translation")
    context: int = Field(4, ge=0, le=100, description="the most earlier sentences in a prompt")
    glossary: int = Field(64, ge=0, le=1000, description="the most entries of a glossary")
    viewers: int = Field(200, ge=0, le=100_000, description="the most viewers of a session")
    transcript_length: int = Field(10_000_000, ge=1000, le=10**9, description="the most characters kept of a session")

    message_bytes: int = Field(65_536, ge=1024, le=1 << 24, description="the longest message or request body")
    updates_per_second: float = Field(50, gt=0, le=10_000, description="updates read from a connection a second")
    starts_per_second: float = Field(5, gt=0, le=10_000, description="sessions that an address may begin a second")
    waiting_messages: int = Field(256, ge=8, le=100_000, description="messages that may wait for a slow reader")
    slow_seconds: float = Field(10, gt=0, le=600, description="seconds until a reader that takes nothing is dropped")
    start_seconds: float = Field(10, gt=0, le=600, description="seconds that a connection has to send `start`")
    ping_seconds: float = Field(20, gt=0, le=600, description="seconds between two pings of a connection")
    pong_seconds: float = Field(40, gt=0, le=600, description="seconds until one that answers no ping is closed")
    keep_seconds: float = Field(120, ge=0, le=86_400, description="how long a session is kept without a connection")
    post_seconds: float = Field(3600, ge=0, le=86_400, description="how long one is kept without captions by POST")
    drain_seconds: float = Field(20, ge=0, le=600, description="seconds to finish after SIGTERM")

    transcripts: Path | None = Field(None, description="folder for transcripts; kept in memory only, if not given")
    log_text: bool = Field(False, description="whether logs may hold transcript text")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, environment, file; the file is the one that `load` was given."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    @property
    def local(self) -> bool:
        """Whether only this machine can connect."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def load(file: Path | None = None, **flags: Any) -> ServeSettings:
    """The settings.

    Args:
        file: TOML; None reads no file.
        flags: by name, None where one was not given.

    Raises:
        OptionError: a setting is unknown or out of range, the file cannot be read, or a server for others has no keys.
    """

    class FromFile(ServeSettings):
        model_config = SettingsConfigDict(toml_file=file)

    if file is not None and not file.is_file():
        raise OptionError(f"settings file {str(file)!r} cannot be read: there is no such file")
    try:
        found = FromFile(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise OptionError(f"setting {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except SettingsError as error:
        raise OptionError(f'{error}: in the environment a list is JSON, such as ["a", "b"]') from None
    except ValueError as error:  # of the file: no TOML
        raise OptionError(f"settings file {str(file)!r} is not valid TOML: {error}") from None
    if not found.local and found.keys is None:
        raise OptionError(
            f"host {found.host!r} lets other machines connect, which needs API keys: make one with "
            "`redraft serve --keys FILE --new-key NAME`, or listen on 127.0.0.1"
        )
    if found.transcripts is not None and not found.transcripts.is_dir():
        raise OptionError(f"transcripts must be a folder, and there is none at {str(found.transcripts)!r}")
    return found
