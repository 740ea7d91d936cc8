"""The books of those whom billing calls: what was done, how often, and what was asked for again."""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import Any


class Books:
    """
    What was done, in memory.

    Args:
        with_keys: Whether a key that was there before is answered as before, and nothing is done again.
    """

    def __init__(self, *, with_keys: bool = True) -> None:
        self.with_keys = with_keys
        self.faults = Counter[str]()
        self.repeated = Counter[str]()
        self.done = Counter[str]()
        self._paid = Counter[int]()
        self._days: dict[str, Counter[str]] = {}
        self._last: dict[str, dict[str, Any]] = {}
        self._answers: dict[tuple[str, str], dict[str, Any]] = {}
        self._seen = set[tuple[str, str]]()
        self._lock = Lock()

    def do(self, service: str, asked: dict[str, Any], key: str) -> dict[str, Any]:
        """
        Do what is asked for, once a key.

        Args:
            service: Whose work it is.
            asked: What; of the processor ``{"day": …, "orders": [{"id": …, "cents": …}, …]}``.
            key: The idempotency key that came with it.
        """
        with self._lock:
            place = (service, key)
            if place in self._seen:
                self.repeated[service] += 1
                if self.with_keys:
                    return self._answers[place]
            self._seen.add(place)
            self.done[service] += 1
            answer = self._pay(asked) if service == "settle" else {"ok": True}
            if service == "crm":
                self._last[str(asked.get("customer"))] = asked
            self._answers[place] = answer
            return answer

    def note(self, fault: str) -> None:
        """Count what went wrong: ``failed``, nothing was done; ``lost``, it was done and not answered."""
        with self._lock:
            self.faults[fault] += 1

    def _pay(self, asked: dict[str, Any]) -> dict[str, Any]:
        orders = asked["orders"]
        self._paid.update(order["id"] for order in orders)
        cents = sum(order["cents"] for order in orders)
        day = self._days.setdefault(asked["day"], Counter())
        day.update(count=len(orders), cents=cents)
        return {"settled": len(orders), "cents": cents}

    def paid_for(self, day: str) -> dict[str, int]:
        """Say how much was paid out for a day."""
        with self._lock:
            found = self._days.get(day, Counter())
            return {"count": found["count"], "cents": found["cents"]}

    def known_to_crm(self, customer: int) -> dict[str, Any]:
        """Say what the CRM was told last of a customer."""
        return self._last.get(str(customer), {})

    def told(self) -> dict[str, Any]:
        """Say what was done: of the processor how many were paid, and how many of these more than once."""
        with self._lock:
            return {
                "paid": len(self._paid),
                "paid_twice": sum(count > 1 for count in self._paid.values()),
                "failed": self.faults["failed"],
                "lost": self.faults["lost"],
                "done": dict(self.done),
                "repeated": dict(self.repeated),
            }
