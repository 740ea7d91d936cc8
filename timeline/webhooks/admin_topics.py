"""The field of the topics of an endpoint: a box for each that there is, with its title, by timeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django import forms
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from timeline.lifecycle import State
from timeline.registry import registry
from timeline.webhooks.facts import ENDINGS, OWN


class Topic(NamedTuple):
    """A topic, with what it is called."""

    name: str
    title: str


class TopicGroup(NamedTuple):
    """Topics of one timeline, or of all."""

    title: str
    topics: Sequence[Topic]


def topic_groups() -> Iterator[TopicGroup]:
    """All topics that there are, the broad ones first."""
    of_any = [Topic(f"task.{ending}", _any_task(ending)) for ending in ENDINGS]
    yield TopicGroup(_("Tasks of all timelines"), of_any)
    for definition in sorted((known for known in registry if known.name not in OWN), key=lambda known: known.name):
        topics = []
        if definition.tells:
            topics.append(Topic(definition.name, _("Everything that it tells")))
            topics += [Topic(f"{definition.name}.{told}", told) for told in sorted(definition.tells)]
        for ending in ENDINGS:
            topics.append(Topic(f"task.{ending}.{definition.name}", _any_task(ending)))
        for name in definition.tasks:
            key = definition.task_key(name)
            title = registry.told(key)[0] or name
            topics += [Topic(f"task.{ending}.{key}", f"{title}: {State(ending).label}") for ending in ENDINGS]
        yield TopicGroup(definition.name, topics)


def _any_task(ending: str) -> str:
    return _("Any task: %(state)s") % {"state": State(ending).label}


class TopicsWidget(forms.CheckboxSelectMultiple):
    """Boxes in groups that unfold; those with a choice are open."""

    template_name = "admin/timeline_webhooks/topics.html"

    def use_required_attribute(self, _initial: Any) -> bool:
        """No: one of them is needed, not each."""
        return False

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        chosen = {str(each) for each in value or []}
        groups = [*topic_groups()]
        known = {topic.name for group in groups for topic in group.topics}
        if gone := sorted(chosen - known):
            groups.insert(
                0, TopicGroup(pgettext("timeline", "Not told any more"), [Topic(each, each) for each in gone])
            )
        shown = [(group, sum(topic.name in chosen for topic in group.topics)) for group in groups]
        widget = {"name": name, "groups": shown, "chosen": chosen, "attrs": self.build_attrs(self.attrs, attrs)}
        return {"widget": widget}


class TopicsField(forms.MultipleChoiceField):
    """Names of topics. Which there are, ``check_topics`` knows: it says which is meant."""

    widget = TopicsWidget

    def __init__(self, **options: Any) -> None:
        options.setdefault("label", capfirst(gettext_lazy("what it is told")))
        said = gettext_lazy("A box for a whole timeline includes all below it, also what it tells later.")
        options.setdefault("help_text", said)
        options.setdefault("error_messages", {"required": gettext_lazy("Choose at least one topic.")})
        super().__init__(**options)

    def valid_value(self, value: Any) -> bool:  # noqa: ARG002 (as Django calls it)
        return True


def titled(topics: Sequence[Any]) -> list[str]:
    """Say what topics are called, for who may not change them."""
    known = {topic.name: (group.title, topic.title) for group in topic_groups() for topic in group.topics}
    found = []
    for topic in map(str, topics):
        group, title = known.get(topic, (pgettext("timeline", "Not told any more"), ""))
        found.append(f"{group} · {title} ({topic})" if title else f"{topic} ({group})")
    return found
