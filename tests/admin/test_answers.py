"""What all answers of the pages have in common."""

from __future__ import annotations

from django.test import Client

from tests.admin.conftest import ACT, ENTITY, LIST, detail


def directives(answer):
    return {said.strip() for said in answer.headers["Cache-Control"].split(",")}


class TestAnswers:
    def test_are_kept_by_no_cache(self, operator, about, order):
        row = about(order)
        chosen = {"action": "cancel", "task": row.pk}
        answers = [operator.get(path) for path in (LIST, f"{LIST}?part", detail(row), ACT)]
        answers += [operator.get(ENTITY, {"label": "testapp.order", "id": order.pk}), operator.post(ACT, chosen)]
        answers += [
            operator.post(ACT, {**chosen, "confirmed": "1"}),
            operator.post(ACT, {**chosen, "confirmed": "1", "reason": "x"}),
        ]
        answers += [Client().get(LIST), Client().post(ACT, chosen)]

        assert [answer.status_code for answer in answers] == [200, 200, 200, 302, 200, 200, 200, 302, 302, 302]
        for answer in answers:
            assert {"no-store", "private"} <= directives(answer)
