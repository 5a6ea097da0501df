"""Text encodings of the protocol: base58, base64, and JSON exactly as the JavaScript library writes and reads it.

Hashes are computed from these texts, so one different byte gives a different id (docs/jazz-protocol.md, section 0).

Numbers are those of JavaScript. An integer beyond 2^53 is rounded to the nearest double when it is written and when it
is read, so that all readers see the same number. NaN and infinity are written as null, -0 as 0.
"""

import binascii
import json
import math
import re
from collections.abc import Sequence
from json.encoder import encode_basestring
from typing import Any

import orjson

from reside.jazz.errors import InvalidArgument, InvalidContent
from reside.jazz.wire.deep_json import is_too_deep, parse_deep, too_deep, write_deep

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_BASE_2, _BASE_4, _BASE_5 = 58**2, 58**4, 58**5
_INVALID_DIGIT = 255
_DIGITS = bytes(_ALPHABET.find(chr(code)) % 256 for code in range(256))
_TO_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_FROM_URL_SAFE = bytes.maketrans(b"-_+/", b"+/!!")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_SAFE_INTEGER = 2**53
_ZERO_FOR_DIGIT = bytes.maketrans(b"123456789", b"000000000")
_SIXTEEN_DIGITS = b"0" * 16
_MAX_PRINTED_INTEGER = 10**21
_JS_EXPONENT_FROM = 21
_JS_EXPONENT_BELOW = -6
_NO_SMALL_INTEGER = re.compile(r'(?:":|[\[,])-?[0-9]+(?:[.eE]|[0-9]{15})')
"""A number in compact JSON, which always follows one of these characters; strings may match as well."""
_AS_WRITTEN = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_RAW_PREFIXES = ("encrypted_U", "binary_U")


def b58encode(data: bytes) -> str:
    """Encode bytes as base58 (Bitcoin's alphabet, no checksum)."""
    number = int.from_bytes(data, "big")
    pairs = []
    # Convert four digits per step: this needs few divisions of the long number. Each pair of digits is looked up.
    while number:
        number, four = divmod(number, _BASE_4)
        high, low = divmod(four, _BASE_2)
        pairs.append(_PAIRS[low])
        pairs.append(_PAIRS[high])
    pairs.reverse()
    zeros = len(data) - len(data.lstrip(b"\0"))
    return "1" * zeros + "".join(pairs).lstrip("1")


def b58decode(text: str) -> bytes:
    """Decode a base58 text.

    Raises:
        InvalidContent: a character is not in the alphabet.
    """
    digits = text.encode("utf-8", "replace").translate(_DIGITS)
    if _INVALID_DIGIT in digits:
        raise InvalidContent("a base58 text contains a character outside of its alphabet")
    number = 0
    # Convert five digits per step: this needs one multiplication of the long number instead of five.
    fives = iter(bytes(-len(digits) % 5) + digits)
    for first, second, third, fourth, fifth in zip(fives, fives, fives, fives, fives, strict=True):
        number = number * _BASE_5 + (((first * 58 + second) * 58 + third) * 58 + fourth) * 58 + fifth
    zeros = len(text) - len(text.lstrip("1"))
    return b"\0" * zeros + number.to_bytes((number.bit_length() + 7) // 8, "big")


def b64encode(data: bytes) -> str:
    """Encode bytes as URL-safe base64 with padding."""
    return binascii.b2a_base64(data, newline=False).translate(_TO_URL_SAFE).decode("ascii")


def b64decode(text: str) -> bytes:
    """Decode a URL-safe base64 text; missing padding is tolerated.

    Raises:
        InvalidContent: the text is not base64.
    """
    try:
        data = text.encode("ascii").translate(_FROM_URL_SAFE)
        return binascii.a2b_base64(data + b"=" * (-len(data) % 4) if len(data) % 4 else data, strict_mode=True)
    except ValueError:
        raise InvalidContent("a base64 text is malformed") from None


def quote(text: str) -> str:
    r"""Quote a string as `JSON.stringify` does: only lone surrogates, quotes, `\` and controls are escaped."""
    if text.startswith(_RAW_PREFIXES):
        return f'"{text}"'
    return quote_plainly(text)


def quote_cipher(text: str) -> str:
    """Quote a string as `quote_plainly` does; it is faster for ciphers, which are long and need no escapes."""
    if text.startswith(_RAW_PREFIXES):
        try:
            return orjson.dumps(text).decode()
        except TypeError:
            pass  # orjson refuses lone surrogates
    return quote_plainly(text)


def quote_plainly(text: str) -> str:
    r"""Quote a string as `JSON.stringify` does, without the exception of `quote` for ciphers."""
    quoted = encode_basestring(text)
    return quoted if quoted.isascii() else _escape_surrogates(quoted)


def compact_json(value: Any) -> str:
    """Return JSON without white space, in insertion order, equivalent to `JSON.stringify` of the same value.

    Raises:
        InvalidArgument: the value is not JSON, or nested too deeply.
    """
    try:
        data = orjson.dumps(value, option=_AS_WRITTEN)
        if not _may_have_unusual_number(data):
            return data.decode()
    except TypeError:
        pass  # orjson refuses lone surrogates, large integers, and non-string keys; JavaScript writes them
    return _compact_json(value)


def _may_have_unusual_number(data: bytes) -> bool:
    """Return whether JSON has a number that JavaScript may print differently; a long text may match as well.

    A regular expression would take fifty times as long for the text of a file's chunk.
    """
    return _SIXTEEN_DIGITS in data.translate(_ZERO_FOR_DIGIT) or b"-0.0" in data


def _compact_json(value: Any) -> str:
    try:
        try:
            text = _ENCODER.encode(value)
        except ValueError:
            text = _ENCODER.encode(_as_javascript(value))
        else:
            if _may_have_unusual_number(text.encode("utf-8", "surrogatepass")):
                text = _ENCODER.encode(_as_javascript(value))
        if is_too_deep(value, text.count("[") + text.count("{")):
            raise too_deep()
    except RecursionError:
        return write_deep(value, scalar=_compact_scalar, key=_key)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"not a JSON value: {error}") from None
    return _escape_surrogates(text)


def parse_json(text: str | bytes) -> Any:
    """Parse a JSON text as `JSON.parse` does.

    Raises:
        InvalidContent: the text is not JSON, or nested too deeply.
    """
    try:
        data = text.encode() if isinstance(text, str) else text
        if _SIXTEEN_DIGITS not in data.translate(_ZERO_FOR_DIGIT):
            return orjson.loads(data)
    except ValueError:
        pass  # orjson refuses lone surrogates and numbers beyond the largest double; JavaScript reads them
    try:
        return _parse(text if isinstance(text, str) else text.decode())
    except ValueError:
        raise InvalidContent("a JSON text is malformed") from None


def _parse(text: str) -> Any:
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        return parse_deep(text, _DECODER.decode)
    if is_too_deep(value, text.count("[") + text.count("{")):
        raise ValueError("nested too deeply")
    return value


def parse_each(texts: Sequence[bytes]) -> list[Any]:
    """Parse many short JSON texts, faster than `parse_json` for each; a malformed one gives None."""
    if _SIXTEEN_DIGITS in b",".join(texts).translate(_ZERO_FOR_DIGIT):
        return [_parsed(text) for text in texts]
    values = []
    for text in texts:
        try:
            values.append(orjson.loads(text))
        except ValueError:
            values.append(_parsed(text))
    return values


def _parsed(text: bytes) -> Any:
    try:
        return parse_json(text)
    except InvalidContent:
        return None


def _js_integer(digits: str) -> float:
    """Round an integer to a double; return it as an int where JavaScript prints all digits."""
    value = float(digits)
    return int(value) if abs(value) < _MAX_PRINTED_INTEGER else value


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_js_integer)


def stable_json(value: Any) -> str:
    """Return the canonical JSON from which hashes are computed: sorted keys, numbers as JavaScript prints them.

    Raises:
        InvalidArgument: the value is not JSON, or nested too deeply.
    """
    if type(value) is dict:
        try:
            text = orjson.dumps(value, option=_AS_WRITTEN | orjson.OPT_SORT_KEYS).decode()
            # For other texts the results differ: JavaScript sorts by UTF-16, and prints most numbers differently.
            if text.isascii() and not _NO_SMALL_INTEGER.search(text):
                return text
        except TypeError:
            pass
    try:
        text = _stable_json(value)
    except RecursionError:
        return write_deep(value, scalar=_stable_json, key=_key, order=_sorted_keys)
    if is_too_deep(value, text.count("[") + text.count("{")):
        raise too_deep()
    return text


def _stable_json(value: Any) -> str:  # noqa: PLR0911 - one return for each JSON type
    if isinstance(value, str):
        return quote(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int | float):
        return js_number(value)
    if isinstance(value, list | tuple):
        return "[" + ",".join([_stable_json(item) for item in value]) + "]"
    if isinstance(value, dict):
        return "{" + ",".join([f"{quote_plainly(key)}:{_stable_json(value[key])}" for key in _sorted_keys(value)]) + "}"
    raise InvalidArgument(f"not a JSON value: {type(value).__name__}")


def _compact_scalar(value: Any) -> str:
    return quote_plainly(value) if isinstance(value, str) else _stable_json(value)


def _key(key: str) -> str:
    if not isinstance(key, str):
        raise InvalidArgument("not a JSON value: an object's keys must be texts")
    return quote_plainly(key)


def _sorted_keys(value: dict[str, Any]) -> list[str]:
    """Sort keys by UTF-16 code units; for ASCII that is Python's order."""
    try:
        return sorted(value) if "".join(value).isascii() else sorted(value, key=_utf16)
    except TypeError:
        raise InvalidArgument("not a JSON value: an object's keys must be texts") from None


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def _escape_surrogates(text: str) -> str:
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    # In JavaScript, two adjacent halves of a surrogate pair are always one character.
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", whole)


def _as_javascript(value: Any) -> Any:
    """Copy a value with its numbers as JavaScript would write them."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _MAX_SAFE_INTEGER else _rounded(value)
    if isinstance(value, float):
        return (value or 0) if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [_as_javascript(item) for item in value]
    if isinstance(value, dict):
        return {key: _as_javascript(item) for key, item in value.items()}
    return value


def _rounded(value: int) -> float | None:
    try:
        return _js_integer(str(value)) if abs(value) < _MAX_PRINTED_INTEGER else float(value)
    except OverflowError:
        return None


def js_number(value: float) -> str:  # noqa: PLR0911 - one return for each case of the standard
    """Format a number as JavaScript's `String(value)` does (ECMA-262, Number::toString)."""
    if isinstance(value, int):
        if abs(value) <= _MAX_SAFE_INTEGER:
            return str(value)
        try:
            value = float(value)
        except OverflowError:
            return "null"
    if not math.isfinite(value):
        return "null"
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent_text = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent_text or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= _JS_EXPONENT_FROM:
        return sign + digits + "0" * (point - count)
    if 0 < point <= _JS_EXPONENT_FROM:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if _JS_EXPONENT_BELOW < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    exponent = f"{'+' if point > 0 else '-'}{abs(point - 1)}"
    return sign + digits[0] + (f".{digits[1:]}" if count > 1 else "") + "e" + exponent
