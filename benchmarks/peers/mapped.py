"""The job about an entity of its own, by SQLAlchemy's ORM: for peers that know nothing of Django."""

from __future__ import annotations

import sqlalchemy
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """Where SQLAlchemy keeps its tables."""


class Member(Base):
    """Somebody whom exactly one job is about."""

    __tablename__ = "bench_member"

    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str]
    counter: Mapped[int]


def count_up(number: int) -> sqlalchemy.Update:
    """Say how the job's own entity is counted up."""
    return sqlalchemy.update(Member).where(Member.id == number).values(counter=Member.counter + 1)


def url_of(url: str) -> str:
    """Write it for SQLAlchemy, which reads the folder of a server on a socket from the query only."""
    parts = conninfo_to_dict(url)
    return sqlalchemy.URL.create(
        "postgresql+psycopg",
        username=parts.get("user"),
        password=parts.get("password"),
        database=str(parts["dbname"]),
        query={name: str(parts[name]) for name in ("host", "port") if parts.get(name)},
    ).render_as_string(hide_password=False)
