"""The attacks that the official server withstands, on the Python server."""

import pytest
from interop.strangers.test_poisoned_values import test_each_poisonous_session_alone_leaves_a_map_readable
from interop.strangers.test_server_survival import test_a_malformed_message_stops_nobody
from interop.strangers.test_unknown_dependencies import (
    reader,
    test_it_delays_no_content_of_others,
    test_it_is_handled_when_the_value_arrives,
)
from interop.strangers.test_unreadable_changes import test_javascript_clients_go_on_reading

pytestmark = pytest.mark.anyio

__all__ = [
    "reader",
    "test_a_malformed_message_stops_nobody",
    "test_each_poisonous_session_alone_leaves_a_map_readable",
    "test_it_delays_no_content_of_others",
    "test_it_is_handled_when_the_value_arrives",
    "test_javascript_clients_go_on_reading",
]
