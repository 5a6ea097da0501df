"""The declaration: all Pulumi resources of one stack as one JSON document, instead of a program that runs.

The document has two readers, which check it strictly and in the same way: the resident engine
(engine/internal/operation/declaration.go) and, for the command line, `program_host`. Both are tested with the cases in
engine/internal/operation/testdata/declarations.json.

A resource refers to others by their index in the document, and only to earlier ones. The first resource is the stack.
Pure.
"""

from __future__ import annotations

from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

STACK_TYPE: Final = "pulumi:pulumi:Stack"
NONE: Final = -1
"""The index that means no resource."""


class InvalidDeclaration(ValueError):  # noqa: N818 - named after what is wrong
    """The document is not a declaration; the message says why and contains no value of an input."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class DeclaredResource(_Strict):
    """One resource. Every member is required in the document.

    Attributes:
        type: the type token of Pulumi.
        name: the name in the state.
        version: the version of the plugin; empty for the stack.
        inputs: the properties; the values of Secrets are among them, so the repr does not show them.
        secrets: the names of the inputs that are encrypted in the state.
        parent: the index of the parent, or `NONE`.
        provider: the index of the provider, or `NONE`.
        custom: whether a provider manages the resource; false for the stack.
        after: the indexes of the resources that must exist before this one.
        retain: whether what the resource represents stays when the resource is deleted or replaced.
        replace: whether the resource may be deleted and recreated if the provider wants that for a change; else it
            is updated, and the update fails if it is impossible.
        creating: properties that are added to the inputs of the call that creates the resource, and stored nowhere: its
            preconditions. The command line ignores them.
    """

    type: str
    name: str
    version: str
    inputs: dict[str, Any] = Field(repr=False)
    secrets: tuple[str, ...]
    parent: int
    provider: int
    custom: bool
    after: tuple[int, ...]
    retain: bool
    replace: bool
    creating: dict[str, Any]

    @model_validator(mode="after")
    def _secrets_are_inputs(self) -> Self:
        if not set(self.secrets) <= self.inputs.keys():
            raise ValueError("a secret is not an input")
        return self


class Declaration(_Strict):
    """The resources of one stack."""

    resources: tuple[DeclaredResource, ...]

    @model_validator(mode="after")
    def _references_are_earlier(self) -> Self:
        if not self.resources or self.resources[0].type != STACK_TYPE:
            raise ValueError("the first resource is not the stack")
        for index, resource in enumerate(self.resources):
            is_stack = resource.type == STACK_TYPE
            if is_stack != (index == 0) or is_stack == resource.custom:
                raise ValueError(f"resource {index} is a second stack, or not managed by what manages its type")
            single = (resource.parent, resource.provider)
            if not all(NONE <= other < index for other in single) or not all(0 <= x < index for x in resource.after):
                raise ValueError(f"resource {index} refers to a resource that is not an earlier one")
        return self

    def encode(self) -> str:
        """Return the document."""
        return self.model_dump_json()


def decode(document: str) -> Declaration:
    """Return the declaration in a document.

    Raises:
        InvalidDeclaration: a member is missing, unknown or of the wrong type, or a reference is wrong.
    """
    try:
        return Declaration.model_validate_json(document)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        found = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}".lstrip(": ") for fault in faults)
        raise InvalidDeclaration(f"the declaration of the stack is invalid: {found}") from None
