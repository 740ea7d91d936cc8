"""Does a definition fit its entity's model? Seen when the models are there."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.exceptions import FieldDoesNotExist, FieldError, ValidationError
from django.db.models import CompositePrimaryKey, DateField, ForeignKey, Model, Q

from timeline.definition.names import without_quotes
from timeline.exceptions import DefinitionError
from timeline.hooks import rules
from timeline.suggestions import did_you_mean

if TYPE_CHECKING:
    from timeline.definition.check_timelines import Problem
    from timeline.definition.definitions import Definition
    from timeline.definition.handlers import Task


def check_model(definition: Definition, model: type[Model]) -> None:
    """Check the entity's model: key, and fields of anchors and guards. ``DefinitionError``: the first mistake."""
    cls = definition.cls
    if isinstance(model._meta.pk, CompositePrimaryKey):
        problem = f"has entity = {cls.entity!r}, whose key has several columns."
        raise DefinitionError(cls.__name__, problem, "Name a model that has a key of one column.")
    for option in ("time_zone", "language"):
        if (field_name := getattr(cls, option)) and not hasattr(model, field_name) and not field_of(model, field_name):
            problem = f"{option} = {field_name!r}, which {definition.label} does not have."
            raise DefinitionError(cls.__name__, problem, meant_field(model, field_name))
    of_features = chain.from_iterable(ask(definition, model) for ask in rules().of_model)
    for problem, remedy in chain(_owner_problems(definition, model), _search_problems(definition, model), of_features):
        raise DefinitionError(cls.__name__, problem, remedy)
    for name, declared in definition.tasks.items():
        for problem, remedy in _model_problems(model, definition, declared):
            raise DefinitionError(cls.__name__, problem, remedy, name)


def meant_model(label: str) -> str:
    """Say which installed model may be meant by a label that none has: of its app, if there is one, or of another."""
    app, _dot, name = label.partition(".")
    known = [
        each._meta.label for each in apps.get_models() if not each._meta.proxy and each._meta.app_label != "timeline"
    ]
    of_app = [each for each in known if each.partition(".")[0] == app]
    by_name = did_you_mean(name, known, otherwise='Use "app_label.Model" of an installed app.')
    return did_you_mean(name, of_app, otherwise=by_name) if of_app else did_you_mean(label, known, otherwise=by_name)


def _owner_problems(definition: Definition, model: type[Model]) -> Iterator[Problem]:
    owner = definition.cls.owner
    if not owner:
        return
    end: Any = model
    meant = ""
    for name in owner.split("."):
        if end is not None and field_of(end, name) is None:
            meant = meant_field(end, name, otherwise="")
        field = field_of(end, name) if end is not None else None
        end = field.related_model if isinstance(field, ForeignKey) else None
    if end is None or not _shares_key(end, get_user_model()):
        problem = f"has owner = {owner!r}, which does not lead from {definition.label} to a user."
        yield problem, f'{meant} Name foreign keys that lead there, with dots between: "account.user".'.lstrip()


def _search_problems(definition: Definition, model: type[Model]) -> Iterator[Problem]:
    for name in definition.search:
        path = name.lstrip("^=@")
        try:
            model._base_manager.filter(**{f"{path}__icontains": "x"})
        except (FieldError, ValueError, TypeError):
            problem = f"has search = {name!r}, which is no field of {definition.label} that holds text."
            yield problem, 'Name fields as in ModelAdmin.search_fields: "email", "^name", "account__name".'


def _path_problems(model: type[Model], label: str, path: object) -> Iterator[Problem]:
    if isinstance(path, str) and led_to(model, path) is None:
        problem = f"waits for an event of {path!r}, which does not lead from {label} to one entity."
        yield problem, 'Name foreign keys that lead there, with dots between: of="order.payment".'


def led_to(model: type[Model], path: str) -> type[Model] | None:
    """The model that foreign keys, or one-to-one fields from either side, lead to, with dots between; None: to none."""
    end: Any = model
    for name in path.split("."):
        field: Any = field_of(end, name)
        if field is None or not (isinstance(field, ForeignKey) or (field.one_to_one and field.auto_created)):
            return None
        end = field.related_model
    return None if isinstance(end._meta.pk, CompositePrimaryKey) else end


def _shares_key(model: type[Model], other: type[Model]) -> bool:
    """Whether both are of one family by links that are primary keys: a child of the user's model is a user."""
    return _root(model) is _root(other)


def _root(model: type[Model]) -> type[Model]:
    key: Any = model._meta.pk
    if getattr(key.remote_field, "parent_link", False):
        return _root(key.related_model)
    return model._meta.concrete_model or model


def _model_problems(model: type[Model], definition: Definition, declared: Task[Any, ..., Any]) -> Iterator[Problem]:
    label, when = definition.label, declared.when
    if when and (field_name := when.field_name):
        if (field := field_of(model, field_name)) is None:
            remedy = without_quotes(definition, when) or meant_field(model, field_name)
            yield f"is anchored to {field_name!r}, which {label} does not have.", remedy
        elif not isinstance(field, DateField):
            yield f"is anchored to {field_name!r}, a {type(field).__name__}.", "Name a date or datetime field."
    yield from _path_problems(model, label, declared.when.awaits_of if declared.when else None)
    for ask in rules().of_task_and_model:
        yield from ask(definition, declared, model)
    for option, guard in declared.guards.items():
        if isinstance(guard, Q):
            try:
                model._base_manager.filter(guard)
            except (FieldError, ValidationError, ValueError, TypeError) as error:
                yield f"has a Q as {option} that does not fit {label} ({error}).", "Use fields of the entity."


def meant_field(model: type[Model], name: str, *, otherwise: str = "Name a field of the entity.") -> str:
    return did_you_mean(name, [field.name for field in model._meta.get_fields()], otherwise=otherwise)


def by_problems(model: type[Model], label: str, kind: str, name: str) -> Iterator[Problem]:
    """What is wrong with the field by which a limit or a rate keeps entities apart; nothing, if it is a column of theirs."""
    field = field_of(model, name)
    if field is None:
        yield f"has a {kind} by {name!r}, which {label} does not have.", meant_field(model, name)
    elif field not in model._meta.concrete_fields:
        problem = f"has a {kind} by {name!r}, which is no column of {label}: it may lead to many."
        yield problem, "Name a field that has one value, such as a foreign key."


def field_of(model: type[Model], name: str) -> object | None:
    """The field of a model by its name; None: it has none."""
    try:
        return model._meta.get_field(name)
    except FieldDoesNotExist:
        return None
