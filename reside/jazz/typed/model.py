"""Maps with a schema: classes with annotated fields, like `co.map` in jazz-tools."""

from collections.abc import Iterable, Mapping
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform, get_origin

from reside.jazz.ids import Json
from reside.jazz.typed.base import TypedValue
from reside.jazz.typed.codecs import DateCodec, Misfit, RefCodec
from reside.jazz.typed.creating import Inline, WriteTarget, check, is_draft
from reside.jazz.typed.errors import SchemaError, SchemaMismatch, UnknownField
from reside.jazz.typed.fields import MISSING, Field, FieldSpec, field, fields_of, register
from reside.jazz.typed.loading import read
from reside.jazz.values.comap import CoMap, assigning
from reside.jazz.values.owned import OwnedValue
from reside.jazz.wire.header import ValueType


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class CoMapModel(TypedValue):
    """A map whose keys are the annotated fields of a class.

    For example::

        class Project(CoMapModel):
            name: str
            tasks: ListOf["Task"]


        class Task(CoMapModel):
            title: str
            done: bool = False
            due: datetime | None = None
            project: Project | None = None


        project = Project(name="Jazz", tasks=ListOf([Task(title="Write")])).create(group)
        project.tasks[0].done = True

    A new object is a draft; `create` writes it. Then reading an attribute reads the value, and assigning it writes. The
    types of fields on the wire:

    * text, numbers, booleans, literals, enumerations, lists, dicts and other types that pydantic can represent: JSON;
    * `datetime`: ISO 8601 text in UTC with milliseconds;
    * another model, `ListOf`, `RecordOf`, `FeedOf`, `Text`, `File`, `Group`, `Account`: a reference, the id.

    `X | None` without a default is a field that may be null. With the default None it may be absent: None is then
    written as JavaScript's undefined, but as null for dates and references, as in jazz-tools. Any other default is
    written if a new value does not give the field, and read if the key is absent.

    Class arguments:
        inline: who owns drafts of this class that are created with the value that refers to them; see `Inline`.
    """

    _value_class: ClassVar[type[OwnedValue]] = CoMap
    _value_type: ClassVar[ValueType] = "comap"
    _specs: ClassVar[dict[str, FieldSpec]] = {}
    _field_cache: ClassVar[dict[str, Field] | None] = None

    def __init_subclass__(cls, *, inline: Inline | None = None, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        cls.inline = inline if inline is not None else cls.inline
        cls._specs = dict(cls._specs)
        cls._field_cache = None
        annotations: dict[str, Any] = dict(get_annotations(cls))
        for name, annotation in annotations.items():
            if get_origin(annotation) is ClassVar or str(annotation).startswith(("ClassVar", "typing.ClassVar")):
                continue
            if name.startswith("_") or hasattr(CoMapModel, name):
                raise SchemaError(
                    f"{cls.__name__}.{name}: the name is reserved; choose another one and set field(key={name!r})"
                )
            given = vars(cls).get(name, MISSING)
            cls._specs[name] = given if isinstance(given, FieldSpec) else FieldSpec(given)
            setattr(cls, name, _Attribute(name))
        register(cls)

    def __init__(self, **values: Any) -> None:
        self._draft: dict[str, Any] = {}
        fields = self._schema()
        for name in values:
            self._field(name)
        missing = [name for name, field in fields.items() if field.is_required and name not in values]
        if missing:
            raise SchemaError(f"a new {type(self).__name__} needs {', '.join(missing)}: give them, or declare defaults")
        for name, found in fields.items():
            value = values[name] if name in values else found.default()
            if value is not None or not found.is_optional:
                check(found.codec, value, found.label)
            self._draft[name] = value

    @classmethod
    def _schema(cls) -> Mapping[str, Field]:
        """Return the fields by name.

        Raises:
            SchemaError: a declaration of the class is invalid.
        """
        if cls._field_cache is None:
            cls._field_cache = fields_of(cls, cls._specs)
        return cls._field_cache

    @classmethod
    def _field(cls, name: str) -> Field:
        """Return a field.

        Raises:
            UnknownField: there is none of this name.
        """
        found = cls._schema().get(name)
        if found is None:
            raise UnknownField(cls.__name__, name, cls._schema())
        return found

    if not TYPE_CHECKING:  # with these, type checkers would accept any attribute

        def __getattr__(self, name: str) -> Any:
            """Refuse to read an attribute that is not a field.

            Raises:
                UnknownField: always.
            """
            raise UnknownField(type(self).__name__, name, self._specs)

        def __setattr__(self, name: str, value: Any) -> None:
            """Assign a field, or a private attribute.

            Raises:
                UnknownField: the model has no such field.
            """
            if not name.startswith("_") and not hasattr(getattr(type(self), name, None), "__set__"):
                raise UnknownField(type(self).__name__, name, self._specs)
            super().__setattr__(name, value)

    @classmethod
    def _references(cls) -> Mapping[str, RefCodec]:
        """See `TypedValue`."""
        return {name: found.codec for name, found in cls._schema().items() if isinstance(found.codec, RefCodec)}

    @classmethod
    def _matches(cls, value: Any) -> bool:
        """Return whether the values of a map's literal fields identify this class among the classes of a union."""
        literals = [found for found in cls._schema().values() if found.is_literal]
        return isinstance(value, CoMap) and all(_fits(found, value) for found in literals)

    def update(self, **values: Any) -> None:
        """Assign several fields in one transaction: readers see all of the assignments or none.

        Raises:
            NotPermitted: this account may not write here.
            SchemaMismatch: a value does not fit; nothing is written.
            UnknownField: a name is not a field's; nothing is written.
        """
        fields = self._schema()
        for name, value in values.items():
            self._check(self._field(name), value)
        if self._value is None:
            self._draft.update(values)
            return
        raw: CoMap = self.raw
        self._check_may_write(f"set {self._named(*values)} of")
        target = WriteTarget(raw.group, value=raw)
        unset = [name for name, value in values.items() if _is_undefined(fields[name], value)]
        written = {name: value for name, value in values.items() if name not in unset}
        raw.update(
            {fields[name].key: self._encode(target, fields[name], value) for name, value in written.items()},
            unset=[fields[name].key for name in unset],
        )

    def as_dict(self) -> dict[str, Any]:
        """Return all fields and their values. References are returned as ids; None if there is none.

        Raises:
            SchemaMismatch: a field does not fit.
        """
        return {
            name: self._id_of(found) if isinstance(found.codec, RefCodec) else self.get(name)
            for name, found in self._schema().items()
        }

    def get(self, name: str) -> Any:
        """Return a field by name, like reading the attribute."""
        found = self._field(name)
        if self._value is None:
            return self._draft[name]
        raw: CoMap = self.raw
        if found.key in raw:
            return read(found.codec, raw[found.key], found.label, raw) if not self._is_null(found) else None
        default = found.default()
        if default is not MISSING:
            return default
        if found.codec.takes_none:
            return None
        raise SchemaMismatch(found.label, found.codec.expected, "nothing: the key is absent", raw)

    def id_of(self, name: str) -> str | None:
        """Return the id in a reference, loaded or not; None if there is none."""
        return self._id_of(self._field(name))

    def unset(self, name: str) -> None:
        """Delete a field's key, like `del` of the attribute.

        Raises:
            NotPermitted: this account may not write here.
        """
        found = self._field(name)
        if self._value is None:
            self._draft[name] = found.default()
            return
        self._check_may_write(f"unset {self._named(name)} of")
        self.raw.delete(found.key)

    def _refer(self, name: str) -> Iterable[tuple[str, Json]]:
        """See `TypedValue`."""
        return [(f".{name}", self.raw.get(self._schema()[name].key))]

    def _write_draft(self, target: WriteTarget) -> OwnedValue:
        """See `TypedValue`."""
        init: dict[str, Json] = {}
        for name, found in self._schema().items():
            value = self._draft[name]
            if value is not None or not found.is_optional:
                init[found.key] = self._encode(target, found, value)
        if target.unique is None:
            return target.owner.create_map(init)
        return target.unique_value("comap", CoMap, assigning(init))

    def _id_of(self, found: Field) -> str | None:
        if self._value is None:
            value = self._draft[found.name]
            return None if value is None or is_draft(value) else str(value.id)
        raw: CoMap = self.raw
        try:
            co_id = found.codec.decode(raw.get(found.key)) if found.key in raw and not self._is_null(found) else None
        except Misfit as misfit:
            raise SchemaMismatch(found.label, found.codec.expected, misfit.found, raw) from None
        return co_id if isinstance(co_id, str) else None

    def _is_null(self, found: Field) -> bool:
        return found.is_optional and self.raw.get(found.key) is None

    def _named(self, *names: str) -> str:
        return ", ".join(self._schema()[name].label for name in names)

    def _check(self, found: Field, value: Any) -> None:
        if value is not None or not found.is_optional:
            check(found.codec, value, found.label, self._value)

    def _encode(self, target: WriteTarget, found: Field, value: Any) -> Json:
        if value is None and found.is_optional:
            return None
        return target.encode(found.codec, value, found.label, found.key)


class _Attribute:
    """Read and write one field of an instance. On the class, return the descriptor itself."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: CoMapModel | None, owner: type) -> Any:
        return self if instance is None else instance.get(self._name)

    def __set__(self, instance: CoMapModel, value: Any) -> None:
        instance.update(**{self._name: value})

    def __delete__(self, instance: CoMapModel) -> None:
        instance.unset(self._name)


def _is_undefined(found: Field, value: Any) -> bool:
    """Return whether a value is written as undefined. For dates and references jazz-tools writes null."""
    return value is None and found.is_optional and not isinstance(found.codec, RefCodec | DateCodec)


def _fits(found: Field, value: CoMap) -> bool:
    try:
        found.codec.decode(value.get(found.key))
    except Misfit:
        return False
    return True
