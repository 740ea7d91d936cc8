"""What is repeated is not fanned out."""

from tests.definition.test_checking import method, mistake
from timeline.timing import each_of, every


class TestRepeated:
    def test_does_not_fan_out(self):
        nudge = method("nudge", every(days=7, most=2))

        error = mistake(entity="testapp.Order", nudge=nudge, tell=method("tell", each_of(nudge)))

        assert "is fanned out by 'nudge', which is repeated." in str(error)
