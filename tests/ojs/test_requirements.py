"""Which tests of ours ask for what each test of the public conformance suite asks for. Those that it fails are not named."""

from __future__ import annotations

from collections import Counter
from importlib import import_module

import pytest

# A test of ours → what the suite calls the same, or a part of it: its id, and the file where an id is used twice.
ASKED = {
    "jobs.TestEnqueue.test_makes_a_row_without_an_entity_by_a_kind_of_its_own": (
        "L0-ENV-001 L0-ENV-009 L0-ENV-012 L0-ENV-013 L0-LC-001 L0-OPS-001 L0-OPS-002"
    ),
    "jobs.TestEnqueue.test_keeps_what_it_does_not_know_and_not_what_is_its_own": (
        "L0-ENV-002 L0-ENV-014 L0-ENV-015 L0-ENV-019"
    ),
    "jobs.TestEnqueue.test_takes_an_id_once": "L0-ENV-010 L0-OPS-017/error-duplicate-job",
    "jobs.TestEnqueue.test_takes_options_beside_the_type_as_the_core_has_them": "L0-ENV-016 L0-ENV-018 L4-PRI-003",
    "jobs.TestEnqueue.test_names_the_field_that_is_wrong": (
        "L0-ENV-003 L0-ENV-004 L0-ENV-005 L0-ENV-006 L0-ENV-007 L0-ENV-008 L0-ENV-011 L0-ENV-017 L0-OPS-003 L0-OPS-031"
    ),
    "jobs.TestEnqueue.test_reads_no_body_that_is_no_object": "L0-OPS-015/error-validation-invalid-payload",
    "jobs.TestEnqueue.test_cannot_do_what_no_policy_says": "L1-RTR-011 L1-RTR-012",
    "jobs.TestEnqueue.test_writes_two_statements_however_many_jobs_there_are": "L4-BULK-003",
    "jobs.TestBatch.test_makes_all_in_order": "L4-BULK-001 L0-OPS-006",
    "jobs.TestBatch.test_makes_none_if_one_is_wrong": "L4-BULK-002",
    "jobs.TestTimes.test_are_kept_and_told": "L0-LC-002 L0-LC-012 L2-DEL-002 L2-DEL-003",
    "jobs.TestTimes.test_that_are_past_put_no_job_before_those_that_came_earlier": "L2-DEL-004",
    "jobs.TestTimes.test_that_are_over_let_a_job_expire": "L2-TTL-001",
    "jobs.TestTimes.test_of_jobs_that_have_begun_do_not_run_out": "L2-TTL-002",
    "jobs.TestCancel.test_ends_a_job_that_waits": (
        "L0-LC-007 L0-LC-011 L0-OPS-015/cancel-available-job L0-OPS-017/cancel-terminal-job-idempotent"
    ),
    "jobs.TestCancel.test_ends_a_job_that_runs_and_its_worker_learns_it": "L0-LC-008",
    "jobs.TestCancel.test_finds_no_job_of_an_id_that_is_none_or_of_another_row": (
        "L0-OPS-016/cancel-nonexistent-job L0-OPS-016/error-job-not-found L0-OPS-019/info-nonexistent-job L0-OPS-030"
    ),
    "jobs.TestServer.test_tells_what_there_is": "L0-OPS-019/manifest-endpoint L0-OPS-020/health-endpoint",
    "jobs.TestServer.test_answers_in_the_same_way_where_there_is_nothing": "L0-OPS-033",
    "workers.TestFetch.test_takes_the_most_urgent_first_and_then_the_oldest": "L4-PRI-001 L4-PRI-002",
    "workers.TestFetch.test_looks_through_queues_in_their_order": "L0-OPS-004 L0-OPS-007",
    "workers.TestFetch.test_tells_who_has_a_job_and_since_when": "L0-LC-003",
    "workers.TestFetch.test_takes_only_jobs": "L0-OPS-005",
    "processes.TestManyWorkers.test_take_each_job_once": "L0-OPS-008",
    "workers.TestAck.test_keeps_the_result": (
        "L0-LC-004 L0-OPS-009 L0-OPS-010 L0-OPS-018/ack-with-result-retrievable L0-OPS-018/info-existing-job "
        "L0-OPS-020/info-readonly"
    ),
    "workers.TestAck.test_is_refused_unless_the_job_is_active": "L0-LC-009 L0-LC-010 L0-LC-013 L0-OPS-032",
    "workers.TestNack.test_lets_a_job_be_tried_again_by_its_policy": (
        "L0-LC-005 L0-OPS-012 L0-OPS-013 L1-RTR-001 L1-RTR-003 L1-RTR-008 L1-RTR-009 L1-RTR-010 L1-RTR-013"
    ),
    "workers.TestNack.test_gives_a_job_up_that_fails_for_good": (
        "L0-LC-006 L0-LC-014 L0-OPS-014 L1-RTR-002 L1-RTR-006"
    ),
    "workers.TestNack.test_tries_no_job_again_that_may_be_tried_never": "L1-RTR-004 L1-RTR-005",
    "workers.TestNack.test_keeps_what_the_worker_says_until_the_job_succeeds": "L0-OPS-011 L1-RTR-015",
    "workers.TestLostLease.test_makes_a_job_available_again_and_counts_as_a_failure": "L1-VIS-001",
    "workers.TestLostLease.test_after_the_time_of_an_attempt_is_a_timeout": "L1-TMO-001",
    "workers.TestHeartbeat.test_makes_leases_longer_of_a_workers_own_jobs": "L1-VIS-002 L1-WRK-001",
    "workers.TestHeartbeat.test_says_what_a_job_says_where_tests_want_that": "L1-WRK-002 L1-WRK-003",
    "workers.TestDeadLetters.test_are_listed": "L1-DLQ-001 L1-DLQ-003 L1-RTR-007",
    "workers.TestDeadLetters.test_may_be_retried_under_their_id_with_a_fresh_budget": "L1-DLQ-002",
    "workers.TestDeadLetters.test_may_be_put_away": "L1-DLQ-004",
    "upkeep.TestEvents.test_tell_the_life_of_a_job_in_order": "L0-EVT-001 L0-EVT-002",
    "upkeep.TestQueues.test_count_jobs_as_clients_see_them": "L4-STATS-001",
    "upkeep.TestQueues.test_may_be_paused_and_resumed": "L4-PAUSE-001 L4-PAUSE-002",
    "rates.TestFetch.test_gives_out_no_more_than_the_rate_of_the_queue": "L4-RL-001",  # of rates
    "crons.TestRegister.test_tells_when_it_comes_next": "L2-CRON-001 L2-CRON-002 L2-CRON-007 L2-TZ-001",
    "crons.TestRegister.test_names_what_is_wrong": "L2-CRON-006",
    "crons.TestMaking.test_makes_a_job_each_time_and_once": "L2-CRON-004",
    "crons.TestMaking.test_goes_by_the_policy_while_the_last_job_is_open": "L2-CRON-005",
    "crons.TestMaking.test_ends_with_its_removal": "L2-CRON-003",
    "unique.TestConflict.test_is_refused_unless_the_job_says_otherwise": "L4-UNIQ-002",
    "unique.TestConflict.test_may_give_the_job_that_is_there": "L4-UNIQ-004",
    "unique.TestConflict.test_may_replace_it": "L4-UNIQ-003",
    "unique.TestWhat.test_counts_only_in_the_states_that_it_names": "L4-UNIQ-007",
    "unique.TestWhat.test_counts_only_for_a_time": "L4-UNIQ-005",
    "unique.TestWhat.test_may_be_some_keys": "L4-UNIQ-006",
    "workflows.TestChain.test_runs_its_steps_one_after_the_other": "L3-CHN-001 L3-CHN-004",
    "workflows.TestChain.test_hands_all_results_on": "L3-CHN-002",
    "workflows.TestChain.test_stops_at_a_step_that_failed_for_good": "L3-CHN-003",
    "workflows.TestCancelling.test_cancels_what_nobody_has_taken_and_what_would_follow": "L3-CHN-005",
    "workflows.TestGroup.test_lets_all_be_fetched_at_once": "L3-GRP-001 L3-GRP-002",
    "workflows.TestGroup.test_fails_when_all_have_ended_if_one_has_failed": "L3-GRP-003 L3-GRP-004",
    "workflows.TestBatch.test_calls_back_when_all_have_ended": (
        "L3-BAT-001 L3-BAT-002 L3-BAT-003 L3-BAT-004 L3-BAT-005"
    ),
}
OF_LEVELS = {"L0": 65, "L1": 24, "L2": 13, "L3": 14, "L4": 15}
OF_LEVELS["L4"] += 1  # of rates


def test_each_requirement_that_holds_is_asked_once():
    ids = [each for asked in ASKED.values() for each in asked.split()]

    assert [each for each, times in Counter(ids).items() if times > 1] == []
    assert Counter(each[:2] for each in ids) == OF_LEVELS


@pytest.mark.parametrize("name", ASKED)
def test_its_test_is_there(name):
    module, *path = name.split(".")
    found = import_module(f"tests.ojs.test_{module}")
    for part in path:
        found = getattr(found, part)
    assert callable(found)
