"""The base class of messages, and the types of their fields."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from redraft.captions.formats.read import printable
from redraft.serve.names import ROOM_NAME, ROOM_RULE


class Message(BaseModel):
    """A message: a JSON object; unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def wire(self) -> str:
        """Return the message as JSON, without fields that are None."""
        return str(self.model_dump_json(exclude_none=True))


#: Names of languages and methods.
ShortText: TypeAlias = Annotated[str, Field(min_length=1, max_length=100)]
Language: TypeAlias = Annotated[
    ShortText, Field(description="BCP 47 tag or English name of a language", examples=["de"])
]
Token: TypeAlias = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9_-]{22,128}$",
        json_schema_extra={"x-allowed": "22 to 128 letters, digits, hyphens and underscores"},
    ),
]
#: Name of a room; it is part of URLs.
RoomName: TypeAlias = Annotated[
    str,
    Field(pattern=ROOM_NAME, json_schema_extra={"x-allowed": ROOM_RULE}, examples=["hall-1"]),
]
Seconds: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Line: TypeAlias = Annotated[
    str, BeforeValidator(lambda value: printable(value).strip() if isinstance(value, str) else value)
]


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


#: Name of an utterance; 7 and "7" are the same.
Utterance: TypeAlias = Annotated[ShortText, BeforeValidator(_as_text, json_schema_input_type=ShortText | int)]
