"""A timeline of three steps, and a journal of what they do outside."""

from tests.testapp.models import Effect
from timeline import Timeline, after, step, task


class Journal:
    """What was done outside, and what is to fail there."""

    def __init__(self):
        self.done = []
        self.fails = []

    def do(self, what):
        self.done.append(what)
        if self.fails and what == self.fails[0]:
            raise self.error(what)
        return what

    def error(self, what):
        self.fails.pop(0)
        return ValueError(f"{what} is down")


def invoicing(journal, **options):
    """Three steps: a number, which is a row, then two calls outside."""

    class Job(Timeline):
        entity = "testapp.Order"

        @task(after(days=1), atomic=False, **options)
        def work(self, order):
            number = self.number(order)
            url = self.upload(number)
            self.send(url)
            return {"url": url}

        @step
        def number(self, order):
            """Take the next number."""
            Effect.objects.create(name="number")
            journal.do("number")
            return Effect.objects.count()

        @step(atomic=False)
        def upload(self, number):
            journal.do("upload")
            return f"/invoices/{number}"

        @step(atomic=False)
        def send(self, url):
            journal.do("send")

    return Job
