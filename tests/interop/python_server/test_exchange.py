"""Python and JavaScript clients exchange values through the Python server, as they do through the official one."""

import pytest
from interop.groups.test_permissions import (
    test_a_forbidden_write_of_javascript_is_relayed_but_not_shown,
    test_javascript_inherits_its_role_from_a_parent_group_created_by_python,
    test_roles_are_inherited_from_a_parent_group_created_by_javascript,
    test_write_only_members_write_and_read_only_their_own,
)
from interop.sync.test_concurrent_writers import (
    test_a_value_larger_than_a_message_arrives_completely,
    test_concurrent_map_writes_converge_on_the_latest,
    test_many_values_are_written_and_loaded_at_once,
)
from interop.values.test_deletion import (
    test_a_forged_deletion_deletes_nothing_and_is_reported_with_its_reason,
    test_a_write_concurrent_with_a_deletion_is_void_and_not_awaited,
    test_what_javascript_deletes_is_deleted_in_python,
    test_what_python_deletes_is_deleted_in_javascript,
)
from interop.values.test_files import (
    test_a_file_is_read_while_javascript_writes_it,
    test_a_file_of_javascript_is_read_in_python,
    test_a_file_of_python_is_read_in_javascript,
    test_a_large_source_is_uploaded_in_chunks,
    test_jazz_tools_reads_and_writes_files,
)
from interop.values.test_value_exchange import (
    test_a_write_without_permission_is_refused_in_python,
    test_both_compute_the_same_unique_map,
    test_javascript_logs_in_with_an_account_made_in_python,
    test_javascript_reads_what_python_wrote_and_writes_back,
    test_of_two_first_writers_of_a_unique_map_the_earlier_wins_on_both_sides,
    test_python_logs_in_with_an_account_made_in_javascript,
    test_python_reads_what_javascript_wrote_and_writes_back,
)

pytestmark = pytest.mark.anyio

__all__ = [
    "test_a_file_is_read_while_javascript_writes_it",
    "test_a_file_of_javascript_is_read_in_python",
    "test_a_file_of_python_is_read_in_javascript",
    "test_a_forbidden_write_of_javascript_is_relayed_but_not_shown",
    "test_a_forged_deletion_deletes_nothing_and_is_reported_with_its_reason",
    "test_a_large_source_is_uploaded_in_chunks",
    "test_a_value_larger_than_a_message_arrives_completely",
    "test_a_write_concurrent_with_a_deletion_is_void_and_not_awaited",
    "test_a_write_without_permission_is_refused_in_python",
    "test_both_compute_the_same_unique_map",
    "test_concurrent_map_writes_converge_on_the_latest",
    "test_javascript_inherits_its_role_from_a_parent_group_created_by_python",
    "test_javascript_logs_in_with_an_account_made_in_python",
    "test_javascript_reads_what_python_wrote_and_writes_back",
    "test_jazz_tools_reads_and_writes_files",
    "test_many_values_are_written_and_loaded_at_once",
    "test_of_two_first_writers_of_a_unique_map_the_earlier_wins_on_both_sides",
    "test_python_logs_in_with_an_account_made_in_javascript",
    "test_python_reads_what_javascript_wrote_and_writes_back",
    "test_roles_are_inherited_from_a_parent_group_created_by_javascript",
    "test_what_javascript_deletes_is_deleted_in_python",
    "test_what_python_deletes_is_deleted_in_javascript",
    "test_write_only_members_write_and_read_only_their_own",
]
