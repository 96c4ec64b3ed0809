"""Sentences about invalid messages and settings.

A sentence names the field and the allowed values, which come from the message's JSON schema, so it is complete
whichever bound was broken.  Pydantic's messages never reach a client, and of the client's input only field names are
quoted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from redraft.errors import OptionError

Schema = Mapping[str, Any]
#: Maximum length in characters of sentences and of names in them.
_LONGEST, _LONGEST_NAME = 300, 60
_POSITION = re.compile(r"line (\d+) column (\d+)")
_NUMBERS = {"integer": "a whole number", "number": "a number"}
#: JSON type -> its name, the keywords of its bounds, and the unit.
_SIZED = {
    "string": ("a string", "minLength", "maxLength", "characters"),
    "array": ("a list", "minItems", "maxItems", "entries"),
    "object": ("an object", "minProperties", "maxProperties", "entries"),
}


def tag_of(kind: Any) -> str:
    """Return the ``type`` of a kind of messages, a model or a dataclass."""
    return str(kind.__pydantic_fields__["type"].default)


def describe(error: ValidationError, *kinds: type) -> OptionError:
    """Return pydantic's first problem as an error that names the field, with dots before the names in it.

    Args:
        kinds: the kinds of messages that are allowed; if there are several, their ``type`` decides.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    path, problem = list(first["loc"]), first["type"]
    if problem == "json_invalid":
        reason = str(first["ctx"]["error"])
        if "surrogate" in reason or "hex escape" in reason:
            return OptionError(
                "the message must be JSON in which no string has one half of a surrogate pair without the other"
            )
        place = _POSITION.search(reason)
        return OptionError(
            "the message must be valid JSON" + (f"; see line {place[1]}, column {place[2]}" if place else "")
        )
    tagged = {tag_of(kind): kind for kind in kinds} if len(kinds) > 1 else {}
    if problem.startswith("union_tag"):
        return OptionError(f"must be one of {', '.join(tagged)}", "type")
    kind = tagged[path.pop(0)] if tagged and path else kinds[0]
    if not path:
        return OptionError("the message must be a JSON object")
    field, rest = _about(problem, path, _schema(kind))
    return OptionError(rest[: _LONGEST - len(field)], field)


@cache
def _schema(kind: type) -> Schema:
    """Return the JSON schema of a kind of messages; making it takes milliseconds."""
    return TypeAdapter(kind).json_schema()


def _about(problem: str, path: Sequence[str | int], whole: Schema) -> tuple[str, str]:
    """Return the field and what is wrong with it."""
    if problem in ("extra_forbidden", "unexpected_keyword_argument"):
        place, outer = _walked(whole, path[:-1])
        name = ".".join([*place, str(path[-1])[:_LONGEST_NAME]])
        return name, f"is not known: the allowed fields are {', '.join(outer.get('properties', {}))}"
    if path[-1] == "[key]":
        place, outer = _walked(whole, path[:-2])
        return ".".join(place), f": every name must be {allowed({'type': 'string', **outer['propertyNames']})}"
    place, schema = _walked(whole, path)
    name = ".".join(place)
    if problem == "missing":
        return name, f"is missing: it must be {allowed(schema)}"
    if problem == "string_unicode":
        return name, "must be Unicode text, and has one half of a surrogate pair without the other"
    return name, f"must be {allowed(schema)}"


def _walked(whole: Schema, path: Sequence[str | int]) -> tuple[list[str], Schema]:
    """Return the field names on a path and the schema at its end; pydantic's markers of union branches are skipped."""
    place: list[str] = []
    schema = _resolved(whole, whole)
    for part in path:
        for branch in schema.get("anyOf", [schema]):
            inner = _inside(_resolved(branch, whole), part)
            if inner is not None:
                schema = _resolved(inner, whole)
                place.append(str(part)[:_LONGEST_NAME])
                break
    return place, schema


def _inside(schema: Schema, part: str | int) -> Schema | None:
    if isinstance(part, int):
        pair = schema.get("prefixItems", [])
        return pair[part] if part < len(pair) else schema.get("items")
    if part in schema.get("properties", {}):
        found: Schema = schema["properties"][part]
        return found
    others = schema.get("additionalProperties")
    return others if isinstance(others, dict) else None


def _resolved(schema: Schema, whole: Schema) -> Schema:
    reference = schema.get("$ref")
    return whole["$defs"][reference.rpartition("/")[2]] if reference else schema


def allowed(schema: Schema) -> str:
    """Describe the values that a JSON schema allows; null is left out, since a field can be omitted instead."""
    if "anyOf" in schema:
        branches = [allowed(branch) for branch in schema["anyOf"] if branch.get("type") != "null"]
        return " or ".join(dict.fromkeys(branches))
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if values:
        return ("one of " if len(values) > 1 else "") + ", ".join(map(str, values))
    if "pattern" in schema:
        return str(schema["x-allowed"])
    kind = schema.get("type", "")
    if kind in _NUMBERS:
        return _NUMBERS[kind] + _range(schema)
    if kind in _SIZED:
        name, least, most, what = _SIZED[kind]
        return name + _count(schema.get(least), schema.get(most), what)
    return "true or false" if kind == "boolean" else "a JSON value"


def _range(schema: Schema) -> str:
    low, high, above = (
        f"{schema[bound]:.16g}" if bound in schema else "" for bound in ("minimum", "maximum", "exclusiveMinimum")
    )
    if high:
        return f" above {above} and at most {high}" if above else f" from {low} to {high}"
    return f" of {low} or more" if low else ""


def _count(least: int | None, most: int | None, what: str) -> str:
    if least and most:
        return f" of {least} {what}" if least == most else f" of {least} to {most} {what}"
    return f" of at most {most} {what}" if most else f" of {least} or more {what}" if least else ""
