"""The schemas of tests/interop/js/schemas.mjs in the typed layer."""

from datetime import datetime
from typing import Literal

from typing_extensions import TypedDict

from reside.jazz.typed import CoMapModel, FeedOf, File, ListOf, RecordOf, Text, field


class Note(CoMapModel):
    """Has a text field."""

    text: str


class Task(CoMapModel):
    """One of each kind of field."""

    title: str
    done: bool = False
    weight: float | None = None
    due: datetime | None = None
    nick: str | None = None
    level: Literal["low", "high"] = "low"
    score: float | None
    tags: list[str] = field(default_factory=list)
    created_by: str | None = field(default=None, key="createdBy")
    note: Note | None = None
    project: "Project | None" = None


class Event(TypedDict):
    """An item of a feed."""

    what: str


class Project(CoMapModel):
    """One of each kind of collection."""

    name: str
    tasks: ListOf[Task]
    labels: RecordOf[str] = field(default_factory=RecordOf)
    events: FeedOf[Event] = field(default_factory=FeedOf)
    days: ListOf[datetime] = field(default_factory=ListOf)


class Page(CoMapModel):
    """Has a text that several accounts may edit."""

    body: Text
    image: File | None = None


class Theme(CoMapModel, inline="same"):
    """A child with the owner of its parent."""

    color: str


class Settings(CoMapModel):
    """A value that is unique in a group."""

    language: str
    theme: Theme


Names = ListOf[str]


class Cat(CoMapModel):
    """A member of a union."""

    type: Literal["cat"] = "cat"
    lives: int


class Dog(CoMapModel):
    """A member of a union."""

    type: Literal["dog"] = "dog"
    tricks: list[str]


class Home(CoMapModel):
    """Has a union."""

    pet: Cat | Dog
