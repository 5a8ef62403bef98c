"""The page that shows the OpenAPI document to people: plain HTML and CSS, made on the server.

The usual viewers are scripts of a megabyte from somebody else's server. This one is a page: it
works without scripts, prints, is read by screen readers, and sends nobody's address anywhere.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

_HERE: Final = Path(__file__).parent
_METHODS: Final = ("get", "post", "put", "patch", "delete")
_CODE: Final = re.compile(r"``?([^`]+)``?")
_LIMITS: Final = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {}",
    "maxItems": "at most {}",
    "pattern": "pattern {}",
    "default": "default {}",
}


class _Field(NamedTuple):
    name: str
    type: Markup
    required: bool
    about: Markup


class _Answer(NamedTuple):
    status: str
    about: Markup
    type: Markup


class _Call(NamedTuple):
    id: str
    method: str
    path: str
    summary: str
    about: list[Markup]
    who: str
    parameters: list[_Field]
    body: Markup | None
    answers: list[_Answer]


class _Group(NamedTuple):
    name: str
    about: Markup
    calls: list[_Call]


class _Shape(NamedTuple):
    name: str
    about: list[Markup]
    fields: list[_Field]
    type: Markup


def render(document: dict[str, Any]) -> str:
    """The page of an OpenAPI document, as HTML."""
    templates = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template("page.html").render(
        info=document["info"],
        about=_paragraphs(document["info"]["description"]),
        groups=[_group(tag, document["paths"]) for tag in document["tags"]],
        shapes=[_shape(name, schema) for name, schema in document["components"]["schemas"].items()],
    )


def stylesheet() -> bytes:
    """The page's style."""
    return (_HERE / "page.css").read_bytes()


def _group(tag: dict[str, str], paths: dict[str, Any]) -> _Group:
    calls = [
        _call(method, path, item[method])
        for path, item in paths.items()
        for method in _METHODS
        if method in item and item[method]["tags"][-1] == tag["name"]
    ]
    return _Group(tag["name"], _prose(tag["description"]), calls)


def _call(method: str, path: str, operation: dict[str, Any]) -> _Call:
    return _Call(
        id=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=operation["summary"],
        about=_paragraphs(operation.get("description", "")),
        who=_who(operation["security"]),
        parameters=[
            _Field(
                parameter["name"],
                _type(parameter["schema"]),
                parameter.get("required", False),
                _about({"description": parameter.get("description", ""), **parameter["schema"]}),
            )
            for parameter in operation.get("parameters", ())
        ],
        body=_content(operation["requestBody"]) if "requestBody" in operation else None,
        answers=[
            _Answer(status, _prose(answer["description"]), _content(answer))
            for status, answer in sorted(operation["responses"].items())
        ],
    )


def _who(security: list[dict[str, list[str]]]) -> str:
    names = {name for option in security for name in option}
    if "adminKey" in names:
        return "operators, with the API key"
    if not names:
        return "anybody"
    return "anybody, or a visitor" if {} in security else "a visitor, with their token"


def _content(holder: dict[str, Any]) -> Markup:
    found = [_type(content["schema"]) for content in holder.get("content", {}).values()]
    return found[0] if found else Markup("")


def _shape(name: str, schema: dict[str, Any]) -> _Shape:
    required = schema.get("required", ())
    fields = [
        _Field(field, _type(about), field in required, _about(about))
        for field, about in schema.get("properties", {}).items()
    ]
    return _Shape(
        name,
        _paragraphs(schema.get("description", "")),
        fields,
        Markup("") if fields else _type(schema),
    )


def _type(schema: dict[str, Any]) -> Markup:
    """The type in words, with links to the schemas it names."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return Markup('<a href="#schema-{0}">{0}</a>').format(name)
    if "anyOf" in schema:
        return Markup(" or ").join(_type(option) for option in schema["anyOf"])
    if "enum" in schema:
        return Markup("one of {}").format(", ".join(map(str, schema["enum"])))
    kind = schema.get("type", "anything")
    if kind == "array":
        parts = schema.get("prefixItems")
        if parts:
            return Markup("[{}]").format(Markup(", ").join(map(_type, parts)))
        return Markup("list of {}").format(_type(schema.get("items") or {}))
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return Markup("object of {}").format(_type(schema["additionalProperties"]))
    return escape(kind)


def _about(schema: dict[str, Any]) -> Markup:
    """The description, and the limits that a value keeps to."""
    sources = [schema, *schema.get("anyOf", ())]
    limits = [
        text.format(_number(source[limit]))
        for source in sources
        for limit, text in _LIMITS.items()
        if source.get(limit) not in (None, "")
    ]
    said = schema.get("description", "").strip()
    return _prose(" ".join(filter(None, [said, f"({'; '.join(limits)})" if limits else ""])))


def _number(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _paragraphs(text: str) -> list[Markup]:
    return [_prose(paragraph) for paragraph in re.split(r"\n\s*\n", text.strip()) if paragraph]


def _prose(text: str) -> Markup:
    """Text with its `code` marked as such; everything else is escaped."""
    pieces = _CODE.split(" ".join(text.split()))
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if number % 2 else escape(piece)
        for number, piece in enumerate(pieces)
    )
