"""The wire format of fields and items: plain JSON, dates, references (docs/jazz-protocol.md, section 8).

A codec is independent of fields: it describes what it expects, and raises `Misfit` with what it found.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, Literal, Protocol, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from reside.jazz.ids import Json, is_co_id
from reside.jazz.typed.errors import describe


class Misfit(Exception):  # noqa: N818 - never leaves this package
    """A value does not fit its codec.

    Attributes:
        found: description of what was found.
    """

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found


class Codec(Protocol):
    """Convert values of one type to JSON and back.

    Attributes:
        expected: description of what fits.
        takes_none: whether None is a value of the type.
    """

    @property
    def expected(self) -> str:
        """Description of what fits."""

    @property
    def takes_none(self) -> bool:
        """Whether None is a value of the type."""

    def encode(self, value: Any) -> Json:
        """Return the JSON of a value; raise `Misfit` if it is of another type."""

    def decode(self, raw: Json) -> Any:
        """Return the value of a JSON document; raise `Misfit` if it is of another type."""


_SCALARS: Final[dict[type, str]] = {str: "a text", bool: "a boolean", int: "an integer", float: "a number"}


class ScalarCodec:
    """The codec of texts, booleans and numbers, the most frequent types."""

    takes_none: ClassVar[bool] = False

    def __init__(self, kind: type) -> None:
        self._kind = kind
        self.expected = _SCALARS[kind]

    def encode(self, value: Any) -> Json:
        """See `Codec`."""
        return self.decode(value)

    def decode(self, raw: Json) -> Any:
        """See `Codec`."""
        kind = type(raw)
        if kind is self._kind:
            return raw
        if self._kind is float and kind is int:
            return float(raw)
        if self._kind is int and kind is float and raw.is_integer():
            return int(raw)  # JavaScript has only one number type
        if isinstance(raw, self._kind) and kind is not bool:
            return raw
        raise Misfit(describe(raw))


class JsonCodec:
    """The codec of any type that pydantic can represent in JSON.

    Examples are unions, literals, enumerations, lists, typed dicts and data classes.

    Args:
        annotation: the type.
        name: the type's name in errors.

    Raises:
        PydanticUserError: the type has no JSON form.
    """

    def __init__(self, annotation: Any, name: str) -> None:
        self._adapter: TypeAdapter[Any] = TypeAdapter(annotation)
        self.expected = f"of type {name}"
        self.is_literal = get_origin(annotation) is Literal
        self.takes_none = self._fits(None)

    def encode(self, value: Any) -> Json:
        """See `Codec`."""
        try:
            self._adapter.validate_python(value, strict=True)
            return self._adapter.dump_python(value, mode="json", warnings="error")
        except (ValidationError, PydanticSerializationError) as error:
            raise Misfit(_found(value, error)) from None

    def decode(self, raw: Json) -> Any:
        """See `Codec`."""
        try:
            return self._adapter.validate_json(json.dumps(raw), strict=True)
        except ValidationError as error:
            raise Misfit(_found(raw, error)) from None

    def _fits(self, raw: Json) -> bool:
        try:
            self._adapter.validate_json(json.dumps(raw), strict=True)
        except ValidationError:
            return False
        return True


class DateCodec:
    """The codec of dates: ISO 8601 text in UTC with milliseconds, as `Date.toISOString` writes it. None is null."""

    def __init__(self, *, takes_none: bool) -> None:
        self.takes_none = takes_none
        self.expected = "a date (datetime with a time zone, on the wire ISO 8601 text)"

    def encode(self, value: Any) -> Json:
        """See `Codec`."""
        if value is None and self.takes_none:
            return None
        if not isinstance(value, datetime):
            raise Misfit(describe(value))
        if value.tzinfo is None:
            raise Misfit("a datetime without a time zone")
        try:
            at = value.astimezone(UTC)
        except OverflowError:
            raise Misfit("a datetime beyond the calendar in UTC") from None
        return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z".rjust(24, "0")

    def decode(self, raw: Json) -> Any:
        """See `Codec`."""
        if raw is None and self.takes_none:
            return None
        if not isinstance(raw, str):
            raise Misfit(describe(raw))
        try:
            at = datetime.fromisoformat(raw)
            return at.astimezone(UTC) if at.tzinfo is not None else at.replace(tzinfo=UTC)
        except (ValueError, OverflowError):  # the latter if only the UTC time exceeds the calendar
            raise Misfit(f"{describe(raw)} that is not a date") from None


class RefCodec:
    """The codec of references to other values: their ids. It does not check what an id refers to; readers do.

    Args:
        targets: the permitted classes: typed values, groups, accounts.
        takes_none: whether the reference may be None.
        name: the targets' name in errors.
        choose: returns the target that a value fits, of several; None if none fits.
    """

    def __init__(
        self, targets: tuple[type, ...], *, takes_none: bool, name: str, choose: Callable[[Any], type | None]
    ) -> None:
        self.targets = targets
        self.takes_none = takes_none
        self.choose = choose
        self.expected = f"a reference to a {name}"

    def adopt(self, draft: Any) -> None:
        """Check that a draft fits. Give a draft of a generic collection such as `ListOf` its item type."""
        for target in self.targets:
            if isinstance(draft, target):
                return
            if getattr(target, "_origin", None) is type(draft):
                draft._specialise(target)
                return
        raise Misfit(f"a draft of {type(draft).__name__}")

    def encode(self, value: Any) -> Json:
        """Return the id of a created value; see `Codec`."""
        if value is None and self.takes_none:
            return None
        co_id = getattr(value, "id", None) if isinstance(value, self.targets) else None
        if not isinstance(co_id, str):
            raise Misfit(describe(value))
        return co_id

    def decode(self, raw: Json) -> Any:
        """Return the id; see `Codec`."""
        if raw is None and self.takes_none:
            return None
        if not is_co_id(raw):
            raise Misfit(f"{describe(raw)} that is not an id" if isinstance(raw, str) else describe(raw))
        return raw


def _found(value: Any, error: ValidationError | PydanticSerializationError) -> str:
    if isinstance(error, ValidationError):
        place = ".".join(str(part) for part in error.errors(include_input=False, include_url=False)[0]["loc"])
        if place and not isinstance(value, str | int | float | None):
            return f"{describe(value)}, which does not fit at {place}"
    return describe(value)
