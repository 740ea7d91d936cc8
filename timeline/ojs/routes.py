"""Which function answers at which address, and who may ask it."""

from __future__ import annotations

from typing import Final

from timeline.ojs import views_jobs, views_upkeep, views_workers, views_workflows
from timeline.ojs.access import Right
from timeline.ojs.answers import Route, view

_READ: Final = (Right.ENQUEUE, Right.WORK, Right.MANAGE)
_ASK: Final = (Right.ENQUEUE, Right.MANAGE)
_WORK: Final = (Right.WORK,)
_MANAGE: Final = (Right.MANAGE,)

VIEWS: Final = {
    "manifest": view(get=Route(views_jobs.manifest)),
    "v1/health": view(get=Route(views_jobs.health)),
    "v1/jobs": view(post=Route(views_jobs.enqueue, _ASK)),
    "v1/jobs/batch": view(post=Route(views_jobs.enqueue_batch, _ASK)),
    "v1/jobs/<str:key>": view(get=Route(views_jobs.get_job, _READ), delete=Route(views_jobs.cancel_job, _ASK)),
    "v1/jobs/<str:key>/activate": view(post=Route(views_jobs.activate_job, _ASK)),
    "v1/workers/fetch": view(post=Route(views_workers.fetch_jobs, _WORK)),
    "v1/workers/ack": view(post=Route(views_workers.ack, _WORK)),
    "v1/workers/nack": view(post=Route(views_workers.nack, _WORK)),
    "v1/workers/heartbeat": view(post=Route(views_workers.heartbeat, _WORK)),
    "v1/dead-letter": view(get=Route(views_upkeep.list_dead, _MANAGE)),
    "v1/dead-letter/<str:key>/retry": view(post=Route(views_upkeep.retry_dead, _MANAGE)),
    "v1/dead-letter/<str:key>": view(delete=Route(views_upkeep.delete_dead, _MANAGE)),
    "v1/cron": view(get=Route(views_upkeep.list_crons, _MANAGE), post=Route(views_upkeep.register_cron, _MANAGE)),
    "v1/cron/<str:name>": view(delete=Route(views_upkeep.unregister_cron, _MANAGE)),
    "v1/queues": view(get=Route(views_upkeep.list_queues, _MANAGE)),
    "v1/queues/<str:name>/stats": view(get=Route(views_upkeep.queue_stats, _MANAGE)),
    "v1/queues/<str:name>/pause": view(post=Route(views_upkeep.pause_queue, _MANAGE)),
    "v1/queues/<str:name>/resume": view(post=Route(views_upkeep.resume_queue, _MANAGE)),
    "v1/workflows": view(post=Route(views_workflows.create_workflow, _ASK)),
    "v1/workflows/<str:key>": view(
        get=Route(views_workflows.get_workflow, _READ), delete=Route(views_workflows.cancel_workflow, _ASK)
    ),
    "v1/events": view(get=Route(views_upkeep.list_events, _MANAGE)),
}
