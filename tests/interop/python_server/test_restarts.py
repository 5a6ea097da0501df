"""The Python server crashes, returns, is unreachable, or loses data: nothing is lost, nothing hangs."""

import pytest
from interop.sync.test_cut_connections import guest, test_a_slow_connection_loses_nothing
from interop.sync.test_reconnect import (
    test_a_first_connection_waits_for_a_server_that_starts,
    test_a_missing_value_is_an_error_and_found_once_it_exists,
    test_a_server_that_lost_its_data_gets_it_back,
    test_a_writer_receives_what_others_wrote_while_it_was_disconnected,
    test_after_a_sync_everything_acknowledged_before_is_visible,
    test_nothing_is_lost_when_the_server_is_killed,
    test_register_is_idempotent_and_completes_an_incomplete_account,
)

pytestmark = pytest.mark.anyio

__all__ = [
    "guest",
    "test_a_first_connection_waits_for_a_server_that_starts",
    "test_a_missing_value_is_an_error_and_found_once_it_exists",
    "test_a_server_that_lost_its_data_gets_it_back",
    "test_a_slow_connection_loses_nothing",
    "test_a_writer_receives_what_others_wrote_while_it_was_disconnected",
    "test_after_a_sync_everything_acknowledged_before_is_visible",
    "test_nothing_is_lost_when_the_server_is_killed",
    "test_register_is_idempotent_and_completes_an_incomplete_account",
]
