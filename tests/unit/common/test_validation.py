"""The faults of a validation name the member and what is wrong, never the value."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from reside.common.validation import describe_faults


class Inner(BaseModel):
    """A nested document."""

    size: int


class Outer(BaseModel):
    """A document with a list, a secret and a rule of its own."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=False)
    inner: list[Inner] = Field(default_factory=list)
    password: int = 0

    @model_validator(mode="after")
    def _consistent(self) -> Outer:
        if self.password == 7:
            raise ValueError("is unlucky")
        return self


def faults_of(document: object) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(document)
    return caught.value


def test_each_member_is_named_by_its_path() -> None:
    error = faults_of({"inner": [{"size": 1}, {}], "other": 1})
    assert describe_faults(error, "file") == "inner.1.size: Field required; other: Extra inputs are not permitted"


def test_a_fault_of_the_whole_value_has_the_name_of_the_root() -> None:
    assert describe_faults(faults_of({"password": 7}), "file") == "file: Value error, is unlucky"


def test_leading_parts_of_the_path_can_be_left_out() -> None:
    error = faults_of({"inner": [{}], "other": 1})
    assert describe_faults(error, "file", skip=1) == "0.size: Field required; file: Extra inputs are not permitted"


def test_members_can_be_named_in_another_way() -> None:
    error = faults_of({"inner": [{}]})
    assert describe_faults(error, "", name=lambda parts: "_".join(parts).upper()) == "INNER_0_SIZE: Field required"


def test_no_value_is_shown() -> None:
    assert "hunter2" not in describe_faults(faults_of({"password": "hunter2"}), "file")
