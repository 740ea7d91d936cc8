"""Every mistake in a declared step, and what is said of it."""

import pytest

from timeline import Retry, Timeline, after, step, task
from timeline.definition import Step
from timeline.exceptions import DefinitionError


def declare(handler=None, **declared):
    """Declare a timeline with a handler that takes these; give what is said of it."""
    body = {"work": task(after(days=1), atomic=False)(named("work", handler)), **declared}
    with pytest.raises(DefinitionError) as raised:
        type("Job", (Timeline,), body)
    return str(raised.value)


async def side_by_side(self): ...


def named(name, method=None):
    def plain(self): ...

    made = method or plain
    made.__name__ = name
    return made


async def fetch(self): ...


class TestAStep:
    @pytest.mark.parametrize(
        ("made", "said"),
        [
            (step(named("Upload")), "Job.Upload: is no name for a step. Use lower-case letters"),
            (step(named("x" * 51)), "is no name for a step"),
            (step(atomic="shared")(named("upload")), "has atomic = 'shared'. Use True or False."),
            (step(once=1, atomic=False)(named("upload")), "has once = 1. Use True or False."),
            (step(once=True)(named("upload")), "is atomic, and once=True. Leave once out"),
            (step(retry=3)(named("upload")), "has retry = 3. Use Retry(…)."),
            (step(retry=Retry(max_attempts=0))(named("upload")), "max_attempts"),
            (step(was="Old name")(named("upload")), "has was = 'Old name'. Use the name it had before"),
            (step(was="upload")(named("upload")), "was 'upload', which is a step of this class."),
            (step(staticmethod(named("upload"))), "is not a plain method. Put @step directly above a def"),
        ],
    )
    def test_says_what_is_wrong(self, made, said):
        assert said in declare(**{made.name: made})

    def test_is_async_with_an_async_handler_only(self):
        fetching = step(atomic=False)(fetch)

        assert "is declared with async def, and each task that may take steps with def." in declare(fetch=fetching)
        said = declare(side_by_side, upload=step(named("upload")))
        assert "is declared with def, and each task that may take steps with async def." in said

    def test_is_not_async_and_atomic(self):
        assert "is async and atomic. Give atomic=False" in declare(side_by_side, fetch=step(fetch))

    def test_keeps_the_name_of_its_method(self):
        said = declare(load=step(named("upload")))

        assert "Job.load: is the step 'upload' under another name." in said

    def test_has_been_what_no_other_one_was(self):
        first, second = step(was="old")(named("first")), step(was="old")(named("second"))

        assert "was 'old', and so was another step." in declare(first=first, second=second)

    @pytest.mark.parametrize(
        "name", ["task", "run", "event", "now", "lost", "idempotency_key", "step", "tasks", "entity", "exits"]
    )
    def test_takes_no_name_that_means_something_else(self, name):
        assert f"Job.{name}: is the name of" in declare(**{name: step(named(name))})

    def test_is_not_wrapped(self):
        said = declare(upload=property(step(named("upload"))))

        assert "has another descriptor around @step. Put @step directly above a plain def." in said

    def test_is_a_method(self):
        assert "Job.upload: is no method. Put @step, or @step(…), directly above a def." in declare(upload=step())


class TestAClass:
    @pytest.mark.parametrize("options", [{}, {"atomic": "own"}, {"bulk": 10, "atomic": False}])
    def test_has_a_task_that_may_take_its_steps(self, options):
        def work(self, order=None): ...

        with pytest.raises(DefinitionError, match="each task of the class is atomic or takes many entities"):
            type(
                "Job",
                (Timeline,),
                {"entity": "testapp.Order", "work": task(**options)(work), "upload": step(named("upload"))},
            )

    def test_may_lend_its_steps_only(self):
        class Uploading(Timeline, abstract=True):
            @step
            def upload(self): ...

        class Job(Uploading):
            @task(atomic=False)
            def work(self): ...

        assert list(Job.definition.steps) == ["upload"]
        assert isinstance(Job.upload, Step)


@pytest.mark.parametrize("drift", [None, "stop", True])
def test_a_task_says_what_other_code_means(drift):
    made = task(after(days=1), atomic=False, drift=drift)(named("other"))

    assert f"has drift = {drift!r}" in declare(other=made)
