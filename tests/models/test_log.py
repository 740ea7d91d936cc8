"""The log: what the database refuses of its entries by itself."""

from tests.models.refusing import Refusal


class TestLog:
    def test_has_one_entry_for_each_step(self, make_task, log):
        task = make_task()
        log(task)

        with Refusal("timeline_log_seq", r"UNIQUE.*logentry.seq$"):
            log(task)
        assert log(task, seq=2).pk
