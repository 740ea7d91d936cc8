"""Checks of Celery."""

import sys

import celery
import pytest

from tests.checks import ids
from timeline.checks import check_broker


@pytest.fixture
def app(monkeypatch):
    """The Celery app of a host."""
    app = celery.Celery("shop", set_as_current=False)
    monkeypatch.setattr(celery, "current_app", app)
    return app


class TestCheckBroker:
    def test_is_silent_by_default(self, app):
        assert check_broker(None) == []

    @pytest.mark.parametrize("accepted", [["json"], ["application/json", "yaml"], []])
    def test_is_silent_where_messages_are_data(self, app, accepted):
        app.conf.accept_content = accepted

        assert check_broker(None) == []

    @pytest.mark.parametrize("accepted", [["pickle"], ("json", "pickle"), {"application/x-python-serialize"}, "pickle"])
    def test_sees_that_messages_may_be_code(self, app, accepted):
        app.conf.accept_content = accepted

        [warning] = check_broker(None)

        assert warning.id == "timeline.W004"
        assert 'accept_content = ["json"]' in warning.hint

    def test_is_silent_where_celery_is_not_used(self, app, monkeypatch):
        app.conf.accept_content = ["pickle"]
        assert ids(check_broker(None))
        monkeypatch.delitem(sys.modules, "celery")

        assert check_broker(None) == []
        assert "celery" not in sys.modules
