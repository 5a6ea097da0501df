"""docs/settings.md is the page of the model of the settings, and each setting can be given in each way."""

from __future__ import annotations

from pathlib import Path

from support import settings_page

from reside.seed.settings import BootstrapSettings, described, variable_of

PAGE = Path(__file__).parents[3] / "docs" / "settings.md"
WITHOUT_OPTION = {"access", "image_documents"}
"""`--local` and `--kubeconfig` give the one, the place of the images' digests the other."""


def test_the_table_is_made_from_the_code() -> None:
    assert settings_page.table() in PAGE.read_text(), "run `python -m tests.support.settings_page`"


def test_each_setting_is_described_in_one_paragraph() -> None:
    for member in settings_page.members():
        assert described(member).endswith((".", ".)")), member


def test_each_setting_has_an_option() -> None:
    assert {member for member in settings_page.members() if settings_page.option(member) is None} == WITHOUT_OPTION


def test_each_setting_has_a_variable_that_nothing_else_uses() -> None:
    variables = {variable_of(member) for member in BootstrapSettings.model_fields}
    assert len(variables) == len(BootstrapSettings.model_fields)
    assert not variables & {"RESIDE_BOOTSTRAP_SETTINGS", "RESIDE_BOOTSTRAP_SETTINGS_FILE"}
