"""The id of a header as cojson's native code computes it (docs/jazz-protocol.md, section 2).

It hashes what it understands of a header: members that it does not know are dropped before, a missing `meta` counts as
null. Inside `meta` keys are sorted by UTF-8 bytes, and a number that is no integer of 64 bits is printed as Rust does.
For the headers that clients write this is the canonical JSON of the header.
"""

from typing import Final

from reside.jazz.errors import InvalidContent
from reside.jazz.ids import CoId, Json
from reside.jazz.wire.crypto import short_hash
from reside.jazz.wire.encoding import js_number, quote_plainly

_MAX_DEPTH: Final = 126
_SIGNED = range(-(2**63), 2**63)
_INTEGERS = range(-(2**63), 2**64)
_MAX_POWER: Final = 308
_DECIMAL_EXPONENTS: Final = range(-4, 17)


def header_id(raw: dict[str, Json]) -> CoId:
    """Return the id of a header.

    Raises:
        InvalidContent: servers refuse this header.
    """
    members = {"meta": _json(raw.get("meta")), "ruleset": _ruleset(raw.get("ruleset")), "type": _text(raw.get("type"))}
    if "createdAt" in raw:
        members["createdAt"] = "null" if raw["createdAt"] is None else _text(raw["createdAt"])
    members["uniqueness"] = _uniqueness(raw)
    try:
        return CoId("co_z" + short_hash(_object(members)))
    except UnicodeEncodeError:
        raise InvalidContent("a header is not valid Unicode") from None


def _ruleset(raw: Json) -> str:
    kind = raw.get("type") if isinstance(raw, dict) else None
    if kind == "group":
        return _object({"type": '"group"', "initialAdmin": _text(raw.get("initialAdmin"))})
    if kind == "unsafeAllowAll":
        return _object({"type": '"unsafeAllowAll"'})
    if kind != "ownedByGroup":
        raise InvalidContent("a header has an unknown ruleset")
    members = {"type": '"ownedByGroup"', "group": _text(raw.get("group"))}
    restricts = raw.get("restrictDeletion")
    if not isinstance(restricts, bool | None):
        raise InvalidContent("a header's restrictDeletion is not a boolean")
    if restricts is not None:
        members["restrictDeletion"] = "true" if restricts else "false"
    return _object(members)


def _uniqueness(raw: dict[str, Json]) -> str:
    if "uniqueness" not in raw:
        raise InvalidContent("a header needs a uniqueness")
    value = raw["uniqueness"]
    if isinstance(value, dict) and "" not in value:
        return _object({key: _text(part) for key, part in value.items()})
    if isinstance(value, str | bool | None):
        return _json(value)
    number = js_number(value) if isinstance(value, int | float) else ""
    if _is_integer(number) and int(number) in _SIGNED:
        return number
    raise InvalidContent("a header's uniqueness is not a text, boolean, integer, null or object of texts")


def _json(value: Json, depth: int = 0) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quote_plainly(value)
    if isinstance(value, int | float):
        return _number(value)
    if depth >= _MAX_DEPTH:
        raise InvalidContent("a header is nested too deeply")
    if isinstance(value, list):
        return "[" + ",".join([_json(item, depth + 1) for item in value]) + "]"
    return _object({key: _json(item, depth + 1) for key, item in value.items()})


def _object(members: dict[str, str]) -> str:
    """Return an object; a stable sort by code points is one by UTF-8 bytes."""
    return "{" + ",".join([f"{quote_plainly(key)}:{members[key]}" for key in sorted(members)]) + "}"


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise InvalidContent("a header's type, owner, admin and creation time are texts")
    return quote_plainly(value)


def _number(value: float) -> str:
    text = js_number(value)
    if _is_integer(text) and int(text) in _INTEGERS:
        return text
    return _printed(_parsed(text))


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isdigit()


def _parsed(text: str) -> float:
    """Parse a number as serde_json does, which rounds twice: the digits to a double, and its product with a power."""
    mantissa, _, exponent_text = text.removeprefix("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    exponent = int(exponent_text or 0) - len(fraction)
    digits = int(whole + fraction)
    while digits not in _INTEGERS:
        digits, exponent = digits // 10, exponent + 1
    value = float(digits)
    while exponent < -_MAX_POWER:
        value, exponent = value / 10.0**_MAX_POWER, exponent + _MAX_POWER
    value = value * float(f"1e{exponent}") if exponent >= 0 else value / float(f"1e{-exponent}")
    return -value if text.startswith("-") else value


def _printed(value: float) -> str:
    """Print a double as serde_json does: shortest digits, an exponent without `+`, `.0` after a short integer."""
    mantissa, _, exponent = f"{value!r}".partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.removeprefix("-").partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    place = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0") or "0"
    if place not in _DECIMAL_EXPONENTS:
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail}e{place - 1}"
    if place >= len(digits):
        return f"{sign}{digits.ljust(place, '0')}.0"
    if place > 0:
        return f"{sign}{digits[:place]}.{digits[place:]}"
    return f"{sign}0.{'0' * -place}{digits}"
