"""Accounts with a typed profile and root, and a migration at each login, like `co.account` in jazz-tools."""

from collections.abc import Iterable, Mapping
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, ClassVar, Self

from reside.jazz.errors import InvalidState, JazzTimeout
from reside.jazz.groups.account import Account
from reside.jazz.ids import CoId, Json
from reside.jazz.typed.base import Resolve
from reside.jazz.typed.codecs import RefCodec
from reside.jazz.typed.errors import SchemaError, SchemaMismatch
from reside.jazz.typed.fields import codec_of, read_annotation, register
from reside.jazz.typed.loading import load_tree, read
from reside.jazz.typed.model import CoMapModel
from reside.jazz.typed.resolving import Spec, read_resolve
from reside.jazz.typed.watching import DeepWatch
from reside.jazz.values.value import Value

if TYPE_CHECKING:
    from reside.jazz.node import Node

_REFERENCES = ("profile", "root")


class ProfileModel(CoMapModel):
    """The profile of an account, which everyone can read. Fields that `register` does not know need defaults."""

    name: str


class AccountModel:
    """The node's account, with the classes of its profile and its root.

    For example::

        class MyRoot(CoMapModel):
            theme: str = "dark"
            projects: ListOf[Project]


        class Me(AccountModel):
            root: MyRoot

            async def migrate(self) -> None:
                if not self.has_root:
                    self.root = MyRoot(projects=ListOf([]))


        me = await Me.login(node, resolve=lambda me: me.root.projects.each)
    """

    _value_class: ClassVar[type[Value]] = Account
    profile: ProfileModel
    root: CoMapModel

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        for name in get_annotations(cls):
            if name not in _REFERENCES:
                raise SchemaError(
                    f"{cls.__name__}.{name}: an account has a profile and a root only; add it to the root"
                )
        for name in _REFERENCES:
            setattr(cls, name, _Reference(name))
        register(cls)

    def __init__(self, account: Account) -> None:
        self._account = account

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AccountModel) and self._account is other._account

    def __hash__(self) -> int:
        return hash(self.id)

    @classmethod
    async def register(cls, node: "Node", name: str, *, resolve: Resolve[Self] = None) -> Self:
        """Publish the node's account; if it exists, load it. Then migrate it and load what `resolve` reads.

        Args:
            node: the node, whose account it is.
            name: the profile's name, for a new account.
            resolve: see `TypedValue.load`; begin with `profile` or `root`.

        Raises:
            JazzError: see `Node.register` and `login`.
        """
        await node.register(name)
        return await cls._open(node, read_resolve(cls, resolve))

    @classmethod
    async def login(cls, node: "Node", *, resolve: Resolve[Self] = None) -> Self:
        """Load the node's account, migrate it, and load what `resolve` reads; see `register`.

        An error in `migrate` is raised as it is, with a note. What the migration wrote until then is kept, and the next
        login migrates again.

        Raises:
            ValueNotFound: the account is not on the server, or its root (`ReferenceNotFound`).
            SchemaMismatch: the profile or the root does not fit.
            JazzError: see `Node.login`.
        """
        await node.login()
        return await cls._open(node, read_resolve(cls, resolve))

    async def migrate(self) -> None:
        """Create or change what this version of the program needs. Override it; by default it does nothing.

        It runs at each login, after the profile and the root are loaded, and may run on several devices at once. So it
        should check before it writes. A root that can't be loaded can be replaced here; otherwise the login fails.
        Of two devices that create a root, the last one wins, unless both use the same unique value:
        `self.root = await MyRoot(…).get_or_create_unique(self.raw, "root")`.
        """

    @property
    def id(self) -> CoId:
        """The account's id."""
        return self._account.id

    @property
    def raw(self) -> Account:
        """The untyped account."""
        return self._account

    @property
    def has_root(self) -> bool:
        """Whether the account has a root."""
        return self._account.root_id is not None

    async def ensure(self, resolve: Resolve[Self], *, timeout: float = 30.0) -> Self:  # noqa: ASYNC109 - as load
        """Load more of what the profile and the root refer to; see `TypedValue.load`."""
        model = type(self)
        await load_tree(self._account._host, model, self.id, read_resolve(model, resolve), timeout=timeout)
        return self

    def watch(self, resolve: Resolve[Self] = None) -> DeepWatch[Self]:
        """Watch this account and what `resolve` reads; see `TypedValue.subscribe`."""
        model = type(self)
        return DeepWatch(self._account._host, model, self.id, read_resolve(model, resolve))

    @classmethod
    async def _open(cls, node: "Node", spec: Spec) -> Self:
        me = cls(node.account)
        for name in _REFERENCES:
            await me._load_if_possible(name)
        try:
            await me.migrate()
        except Exception as error:
            error.add_note(f"raised by {cls.__name__}.migrate; the next login of {me.id} migrates again")
            raise
        await load_tree(node._host, cls, me.id, Spec({name: Spec() for name in _REFERENCES}))
        await load_tree(node._host, cls, me.id, spec)
        return me

    async def _load_if_possible(self, name: str) -> None:
        """Load the profile or the root for the migration, which may replace one that can't be loaded."""
        try:
            await load_tree(self._account._host, type(self), self.id, Spec({name: Spec(tolerant=True)}))
        except (JazzTimeout, SchemaMismatch):
            return  # raised after the migration, if it is still there

    @classmethod
    def _view(cls, value: Any) -> Self:
        """See `View`."""
        return cls(value)

    @classmethod
    def _references(cls) -> Mapping[str, RefCodec]:
        """See `View`."""
        found: dict[str, RefCodec] | None = vars(cls).get("_codecs")
        if found is None:
            found = {name: _codec_of(cls, name) for name in _REFERENCES}
            cls._codecs = found  # type: ignore[attr-defined] # each class has its own, which vars() above reads
        return found

    def _refer(self, name: str) -> Iterable[tuple[str, Json]]:
        """See `View`."""
        return [(f".{name}", self._id_of(name))]

    def _id_of(self, name: str) -> CoId | None:
        return self._account.root_id if name == "root" else self._account.profile_id


class _Reference:
    """Read and assign the profile or the root."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: AccountModel | None, owner: type[AccountModel]) -> Any:
        if instance is None:
            return self
        label, found = f"{owner.__name__}.{self._name}", instance._id_of(self._name)
        if found is None:
            raise InvalidState(f"{label}: the account {instance.id} has none yet; assign one in migrate()")
        return read(owner._references()[self._name], found, label, instance.raw)

    def __set__(self, instance: AccountModel, value: CoMapModel) -> None:
        target = instance._references()[self._name].targets[0]
        if not isinstance(value, target):
            raise SchemaError(f"{type(instance).__name__}.{self._name} must be a {target.__name__}")
        if self._name == "profile":
            if value.is_draft:
                raise SchemaError("a profile must be created in a group that everyone can read, before it is assigned")
            instance.raw._check_is_own("set the profile of")
            instance.raw._set_profile(value.raw)
            return
        if value.is_draft:
            value.create(instance.raw._host.create_group())
        instance.raw.set_root(value.raw)


def _codec_of(model: type[AccountModel], name: str) -> RefCodec:
    label = f"{model.__name__}.{name}"
    owner = next(parent for parent in model.__mro__ if name in get_annotations(parent))
    codec = codec_of(read_annotation(get_annotations(owner)[name], owner, label), label)
    if (
        isinstance(codec, RefCodec)
        and not codec.takes_none
        and all(issubclass(one, CoMapModel) for one in codec.targets)
    ):
        return codec
    raise SchemaError(f"{label} must be a subclass of CoMapModel")
