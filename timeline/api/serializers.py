"""Rows as they are answered, field by field. Subclass one to show more, and name it in a subclass of its view."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.db.models import DateTimeField
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from timeline.api.fields import ChoiceOf, EntityField, EntitySerializer, InstantField, TitleField
from timeline.features.recurring.reading import schedule_of
from timeline.features.steps.api import StepSerializer
from timeline.features.steps.reading import StepLines, steps_of_task
from timeline.features.waits.reading import wait_of, waits_in_words
from timeline.lifecycle import State
from timeline.models import Event, LogEntry, ScheduledTask
from timeline.policy import Action
from timeline.reading.explanation import explain
from timeline.reading.in_the_way import in_the_way
from timeline.reading.log_parts import LogPart, read_log
from timeline.reading.masks import masked, masked_entry, without_people, without_people_entry
from timeline.reading.reason_texts import retold, title_of_reason
from timeline.registry import registry

CODE: Final = "One of a closed set; empty where nothing needs one."


class RowSerializer(serializers.ModelSerializer[Any]):
    """Base: moments in UTC; knows whether this user reads payloads."""

    serializer_field_mapping = {**serializers.ModelSerializer.serializer_field_mapping, DateTimeField: InstantField}

    @property
    def hides(self) -> bool:
        """Whether payloads, results and errors are kept from this user."""
        view = self.context["view"]
        return not view.policy.sees_payload(view.request.user)

    def shown(self, task: ScheduledTask) -> ScheduledTask:
        """The task without what this user may not read of its reason."""
        shown = masked(task) if self.hides else task
        return shown if self.sees_people(task) else without_people(shown)

    def sees_people(self, task: ScheduledTask) -> bool:
        """Whether this user reads who decided, and what they wrote."""
        view = self.context["view"]
        return bool(view.policy.sees_decisions(view.request.user, task))


class TaskSerializer(RowSerializer):
    """One task, as in lists."""

    task = serializers.CharField(source="task_key", read_only=True, help_text="Its key: timeline and method.")
    title = TitleField(help_text="What people call it; empty: it has no title.")
    timeline = serializers.CharField(read_only=True)
    entity = EntityField(help_text="What it is about; null: the system.")
    run = serializers.UUIDField(source="run_id", read_only=True, allow_null=True)
    previous = serializers.UUIDField(source="previous_id", read_only=True, allow_null=True)
    state = ChoiceOf(State, read_only=True)
    reason_code = serializers.CharField(read_only=True, help_text=CODE)
    reason = serializers.SerializerMethodField(
        help_text="Why it is where it is; of errors, and what people wrote, only to those who may read it."
    )
    reason_title = serializers.SerializerMethodField(
        help_text="What people call the exit, or the condition that refused, which is the reason; empty: it has no words of "
        "its own, or the reason is another one."
    )
    actor = serializers.SerializerMethodField(help_text="Who decided; empty: the system, or you may not read it.")
    limit_key = serializers.CharField(
        read_only=True, help_text="What it competes for, where only so many may be under way at once; empty: nothing."
    )
    slot = serializers.IntegerField(
        read_only=True, help_text="The place of its limit that it holds; 0: none. One that has ended keeps it closed."
    )
    stands = serializers.SerializerMethodField(
        help_text="Until when it is on hold, and until when it waits for somebody or something; empty: neither."
    )
    actions = serializers.SerializerMethodField(help_text="What you may do with it as it is now.")

    _held: dict[UUID, str] | None = None

    class Meta:
        model = ScheduledTask
        fields = [
            "id",
            "task",
            "title",
            "timeline",
            "entity",
            "run",
            "occurrence",
            "revision",
            "previous",
            "state",
            "seq",
            "priority",
            "queue",
            "nominal_at",
            "scheduled_at",
            "expires_at",
            "attempt",
            "failures",
            "lost",
            "max_attempts",
            "limit_key",
            "slot",
            "reason_code",
            "reason",
            "reason_title",
            "actor",
            "created_at",
            "started_at",
            "finished_at",
            "stands",
            "actions",
        ]
        read_only_fields = fields

    def get_reason(self, task: ScheduledTask) -> str:
        return retold(self.shown(task))

    def get_reason_title(self, task: ScheduledTask) -> str:
        return title_of_reason(self.shown(task))

    def get_actor(self, task: ScheduledTask) -> str:
        return self.shown(task).actor

    def get_stands(self, task: ScheduledTask) -> str:
        """In words; what keeps the tasks of a list is read together."""
        if self._held is None or task.pk not in self._held:
            page = self.parent.instance if isinstance(self.parent, serializers.ListSerializer) else None
            tasks = {each.pk: each for each in page or [] if isinstance(each, ScheduledTask)} | {task.pk: task}
            found = self.context.get("in_the_way")  # Which the view may have read.
            held = in_the_way(tasks.values(), found, using=self.context["view"].get_using())
            self._held = {key: held.get(key, "") for key in tasks}
        return "; ".join(filter(None, [self._held[task.pk], waits_in_words(task)]))

    @extend_schema_field(serializers.ListField(child=ChoiceOf(Action)))
    def get_actions(self, task: ScheduledTask) -> list[Action]:
        view = self.context["view"]
        actions: list[Action] = view.policy.actions(view.request.user, task)
        return actions


class LogSerializer(RowSerializer):
    """One fact in the life of a task."""

    from_state = ChoiceOf(State, read_only=True)
    to_state = ChoiceOf(State, read_only=True)
    reason_code = serializers.CharField(read_only=True, help_text=CODE)
    reason = serializers.SerializerMethodField(help_text="Empty as well where you may not read it.")
    actor = serializers.SerializerMethodField(help_text="Who decided; empty: the system, or you may not read it.")
    detail = serializers.SerializerMethodField(help_text="What else it became; null where it is masked.")

    class Meta:
        model = LogEntry
        fields = ["seq", "at", "from_state", "to_state", "attempt", "actor", "reason_code", "reason", "detail"]
        read_only_fields = fields

    def get_reason(self, entry: LogEntry) -> str:
        return retold(self._shown(entry))

    def get_actor(self, entry: LogEntry) -> str:
        return self._shown(entry).actor

    def _shown(self, entry: LogEntry) -> LogEntry:
        task = self.context["task"]
        shown = masked_entry(entry) if self.hides else entry
        return shown if self.sees_people(task) else without_people_entry(shown, task)

    @extend_schema_field({"type": ["object", "null"], "additionalProperties": {}})
    def get_detail(self, entry: LogEntry) -> dict[str, Any] | None:
        return None if self.hides else entry.detail


class WaitSerializer(serializers.Serializer[Any]):
    """What a task waits for."""

    events = serializers.ListField(child=serializers.CharField(), read_only=True, help_text="The first of any of them.")
    key = serializers.CharField(read_only=True, help_text="Which the event has to have; empty: any.")
    entity = EntitySerializer(read_only=True, allow_null=True, help_text="Whose events; null: the system's.")
    since = InstantField(read_only=True)
    until = InstantField(read_only=True, help_text="When it goes on without.")
    permission = serializers.CharField(
        read_only=True, help_text="Of those who may approve or reject; empty: nobody is asked."
    )


class TaskDetailSerializer(TaskSerializer):
    """One task with all there is about it."""

    description = serializers.SerializerMethodField(
        help_text="What its code says of it; empty as well where you may not read who decided."
    )
    masked = serializers.SerializerMethodField(
        help_text="Whether payload, results, error and the details of the log are null because you may not read them."
    )
    payload = serializers.SerializerMethodField()
    result = serializers.SerializerMethodField()
    error = serializers.SerializerMethodField()
    steps = serializers.SerializerMethodField(
        help_text="Those that are done or begun, loops, and how far the handler is, in the order they were first recorded."
    )
    steps_left_out = serializers.SerializerMethodField(help_text="So many earlier steps are not among these.")
    log = serializers.SerializerMethodField(help_text="Of a long log the latest entries, or those before `before`.")
    log_left_out = serializers.SerializerMethodField(help_text="So many entries are before the first of these.")
    wait = serializers.SerializerMethodField(help_text="What it waits for now; null: for no event.")
    schedule = serializers.SerializerMethodField(
        help_text="When its timeline starts by the clock, in words; empty: it does not."
    )
    explanation = serializers.SerializerMethodField(help_text="Its story in sentences, one a line.")

    _steps: tuple[ScheduledTask, StepLines] | None = None
    _log: tuple[ScheduledTask, LogPart] | None = None

    class Meta(TaskSerializer.Meta):
        fields = [
            *TaskSerializer.Meta.fields,
            *("description", "masked", "payload", "result", "error", "steps", "steps_left_out"),
            *("log", "log_left_out", "wait", "schedule", "explanation"),
        ]
        read_only_fields = fields

    def get_description(self, task: ScheduledTask) -> str:
        return registry.told(task.task_key)[1] if self.sees_people(task) else ""

    def get_masked(self, task: ScheduledTask) -> bool:
        return self.hides

    @extend_schema_field({"type": ["object", "null"], "additionalProperties": {}})
    def get_payload(self, task: ScheduledTask) -> dict[str, Any] | None:
        return None if self.hides else task.payload

    @extend_schema_field({})
    def get_result(self, task: ScheduledTask) -> Any:
        return None if self.hides else task.result

    def get_error(self, task: ScheduledTask) -> str | None:
        return None if self.hides else task.error

    @extend_schema_field(StepSerializer(many=True))
    def get_steps(self, task: ScheduledTask) -> Any:
        return StepSerializer(self._read_steps(task), many=True).data

    def get_steps_left_out(self, task: ScheduledTask) -> int:
        return self._read_steps(task).left_out

    @extend_schema_field(LogSerializer(many=True))
    def get_log(self, task: ScheduledTask) -> Any:
        return LogSerializer(self._read_log(task).entries, many=True, context={**self.context, "task": task}).data

    def get_log_left_out(self, task: ScheduledTask) -> int:
        return self._read_log(task).left_out

    @extend_schema_field(WaitSerializer(allow_null=True))
    def get_wait(self, task: ScheduledTask) -> Any:
        wait = wait_of(task, using=self.context["view"].get_using())
        return None if wait is None else WaitSerializer(wait).data

    def get_schedule(self, task: ScheduledTask) -> str:
        return schedule_of(task.timeline, now=self.context["view"].now) if task.run_id else ""

    def get_explanation(self, task: ScheduledTask) -> str:
        view = self.context["view"]
        people = self.sees_people(task)
        steps, log, payload = self._read_steps(task), self._read_log(task), not self.hides
        return explain(task, now=view.now, using=view.get_using(), payload=payload, people=people, steps=steps, log=log)

    def _read_log(self, task: ScheduledTask) -> LogPart:
        if self._log is None or self._log[0] is not task:
            view = self.context["view"]
            self._log = (task, read_log(task, before=self.context.get("before"), using=view.get_using()))
        return self._log[1]

    def _read_steps(self, task: ScheduledTask) -> StepLines:
        if self._steps is None or self._steps[0] is not task:
            self._steps = (task, steps_of_task(task, using=self.context["view"].get_using(), results=not self.hides))
        return self._steps[1]


class ForeseenSerializer(serializers.Serializer[Any]):
    """A follow-up that gets a row if its predecessor completes."""

    task = serializers.CharField(read_only=True)
    title = serializers.CharField(read_only=True, help_text="What people call it; empty: it has no title.")
    timeline = serializers.CharField(read_only=True)
    entity = EntitySerializer(read_only=True, allow_null=True)
    run = serializers.UUIDField(read_only=True)
    expected_at = InstantField(read_only=True, allow_null=True)
    why = serializers.CharField(read_only=True)


class EventSerializer(RowSerializer):
    """An event as it was recorded."""

    entity = EntityField(help_text="What it is about; null: the system.")

    class Meta:
        model = Event
        fields = ["id", "name", "entity", "key", "actor", "occurred_at", "recorded_at"]
        read_only_fields = fields


class EmissionSerializer(serializers.Serializer[Any]):
    """What an event did."""

    created = serializers.BooleanField(
        source="recorded", read_only=True, help_text="False: it was there already, and nothing was done."
    )
    event = EventSerializer(read_only=True)
    started = serializers.SerializerMethodField(help_text="Timelines of which it started a run.")
    ended = serializers.SerializerMethodField(help_text="Timelines of which it ended a run.")
    moved = serializers.SerializerMethodField(help_text="Machines of which it moved a run.")

    def get_started(self, emission: Any) -> list[str]:
        return [run.timeline for run in emission.started]

    def get_ended(self, emission: Any) -> list[str]:
        return [run.timeline for run in emission.ended]

    def get_moved(self, emission: Any) -> list[str]:
        return [run.timeline for run in emission.moved]
