"""Names, bodies and responses of the contract `user-manager.v1`. They are on the wire and never change.

A user is named by name or by account id in all bodies; a replica by its id.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from reside.model.constants import OWN
from reside.model.entities import Decision, Entity
from reside.model.identities import resolved

USER_MANAGER_CONTRACT: Final = f"{OWN}/contracts/user-manager.v1"
USER_MANAGER_IDENTITY: Final = f"{OWN}/replicas/user-manager"

USERS: Final = "users"
"""Member of the data map: id of a map, account → User."""

READ_USERS: Final = "user:read:all"
MANAGE_USERS: Final = "user:manage:all"
"""Give any permission of any replica to users. Its holders can give themselves all other permissions."""

ADD_USER: Final = "add-user"
RENAME_USER: Final = "rename-user"
REMOVE_USER: Final = "remove-user"
LIST_USERS: Final = "list-users"
DEFINE_SET: Final = "define-set"
DELETE_SET: Final = "delete-set"
LIST_SETS: Final = "list-sets"
ASSIGN_SET: Final = "assign-set"
UNASSIGN_SET: Final = "unassign-set"
GRANT_PERMISSION: Final = "grant-permission"
REVOKE_PERMISSION: Final = "revoke-permission"
WHO_HAS: Final = "who-has"

MAX_PERMISSIONS: Final = 256
"""Permissions of one set, and of one user apart from sets."""
_MAX_TEXT: Final = 2000
_MAX_NAME: Final = 255

Account = Annotated[str, Field(pattern=r"^co_z[1-9A-HJ-NP-Za-km-z]{10,60}$")]
Name = Annotated[str, Field(pattern=r"^[\p{L}\p{N}][\p{L}\p{N}.@+-]{0,63}$")]
"""Name of a user or a set: letters, digits and `.@+-`. Account ids have an underscore, so they are no names."""
Who = Annotated[str, Field(max_length=_MAX_NAME)]
Reason = Annotated[str, Field(max_length=_MAX_TEXT)]


class Permission(Entity):
    """A permission of one replica that users can have."""

    replica: int
    contract: Annotated[str, AfterValidator(resolved)] = Field(max_length=_MAX_NAME)
    permission: str = Field(max_length=_MAX_NAME)
    instance_id: str | None = Field(default=None, max_length=_MAX_NAME)
    params: dict[str, Any] = Field(default_factory=dict)

    @property
    def key(self) -> str:
        """What names the permission: replica, contract, name and instance, without params."""
        parts = [str(self.replica), self.contract, self.permission]
        return ":".join(parts if self.instance_id is None else [*parts, self.instance_id])


class OwnGrant(Permission):
    """A permission that a user has apart from sets."""

    decided: Decision


class User(Entity):
    """A user: the name of an account, and what was given to it.

    Attributes:
        added: who added the user.
        sets: names of the sets that the user has, with who assigned them.
        permissions: what the user has apart from sets.
    """

    account: str
    name: str
    added: Decision
    sets: dict[str, Decision] = Field(default_factory=dict)
    permissions: tuple[OwnGrant, ...] = ()


class PermissionSet(Entity):
    """A named set of permissions; `decided` is who defined it last."""

    name: str
    permissions: tuple[Permission, ...]
    decided: Decision


class Holding(Entity):
    """A permission that a user should have, and whether it is in force.

    Attributes:
        sources: `set NAME` for each set that contains it, and `granted` if the user has it apart from sets.
        in_force: whether the replica has carried the grant out, with the params of `permission`.
    """

    user: str
    account: str
    permission: Permission
    sources: tuple[str, ...]
    in_force: bool


class Users(Entity):
    """Response of `list-users`."""

    users: tuple[User, ...]


class Sets(Entity):
    """Response of `list-sets`."""

    sets: tuple[PermissionSet, ...]


class Holdings(Entity):
    """Response of `who-has`."""

    holdings: tuple[Holding, ...]


class _Body(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        hide_input_in_errors=True,
        defer_build=True,  # at first use: each command that names accounts imports this module, and needs no body
    )


class AddUser(_Body):
    """Body of `add-user`."""

    account: Account
    name: Name
    reason: Reason = ""


class RenameUser(_Body):
    """Body of `rename-user`."""

    user: Who
    name: Name


class NamedUser(_Body):
    """Body of `remove-user`."""

    user: Who


class DefineSet(_Body):
    """Body of `define-set`: what the set contains from now on."""

    name: Name
    permissions: tuple[Permission, ...] = Field(max_length=MAX_PERMISSIONS)
    reason: Reason = ""


class NamedSet(_Body):
    """Body of `delete-set`."""

    name: Name


class SetOfUser(_Body):
    """Body of `assign-set` and `unassign-set`."""

    user: Who
    set: Name
    reason: Reason = ""


class PermissionOfUser(_Body):
    """Body of `grant-permission` and `revoke-permission`, which ignores the params."""

    user: Who
    permission: Permission
    reason: Reason = ""


class WhoHas(_Body):
    """Body of `who-has`: what to look for; what is not given matches everything."""

    user: Who | None = None
    replica: int | None = None
    permission: str | None = Field(default=None, max_length=_MAX_NAME)
