"""
The verbs that people import. Each reads story time once, finds the database of the entity, and makes one operation call.

``using`` names a database. Without it, the database is the one that ``entity.save()`` would write to: the one that the host's
routers give, or the one from which the entity was read. Each verb has an async form with an ``a`` in front; see the end of the
module.
"""

from asgiref.sync import sync_to_async

from timeline.shortcuts.decisions import (
    approve,
    cancel,
    cancel_all,
    forget_step,
    go_on,
    hold,
    lift_brake,  # of rates
    move,
    open_limit,  # of limits
    reconcile,
    redrive,
    redrive_group,
    reject,
    relabel,
    release,
    run_now,
    schedule,
    step_happened,
)
from timeline.shortcuts.erasure import erase
from timeline.shortcuts.questions import dead_letters, explain, foreseen, preview, what_if
from timeline.shortcuts.runs import emit, emit_many, enroll, leave, start, start_many

__all__ = [
    "aapprove",
    "acancel",
    "acancel_all",
    "adead_letters",
    "aemit",
    "aemit_many",
    "aenroll",
    "aerase",
    "aexplain",
    "aforeseen",
    "aforget_step",
    "ago_on",
    "ahold",
    "aleave",
    "alift_brake",  # of rates
    "amove",
    "aopen_limit",  # of limits
    "approve",
    "apreview",
    "areconcile",
    "aredrive",
    "aredrive_group",
    "areject",
    "arelease",
    "arun_now",
    "aschedule",
    "astart",
    "astart_many",
    "astep_happened",
    "awhat_if",
    "cancel",
    "cancel_all",
    "dead_letters",
    "emit",
    "emit_many",
    "enroll",
    "erase",
    "explain",
    "foreseen",
    "forget_step",
    "go_on",
    "hold",
    "leave",
    "lift_brake",  # of rates
    "move",
    "open_limit",  # of limits
    "preview",
    "reconcile",
    "redrive",
    "redrive_group",
    "reject",
    "relabel",
    "release",
    "run_now",
    "schedule",
    "start",
    "start_many",
    "step_happened",
    "what_if",
]

# For async code: the same arguments, results and errors. Each call runs in the thread in which Django keeps the connections of
# the request, and each is a transaction of its own: a transaction cannot span two awaits. Calls that have to be in one
# transaction go into one function, called through ``sync_to_async``.
aemit = sync_to_async(emit, thread_sensitive=True)
astart = sync_to_async(start, thread_sensitive=True)
aemit_many = sync_to_async(emit_many, thread_sensitive=True)
astart_many = sync_to_async(start_many, thread_sensitive=True)
aenroll = sync_to_async(enroll, thread_sensitive=True)
aleave = sync_to_async(leave, thread_sensitive=True)
aschedule = sync_to_async(schedule, thread_sensitive=True)
acancel = sync_to_async(cancel, thread_sensitive=True)
acancel_all = sync_to_async(cancel_all, thread_sensitive=True)
aopen_limit = sync_to_async(open_limit, thread_sensitive=True)  # of limits
alift_brake = sync_to_async(lift_brake, thread_sensitive=True)  # of rates
amove = sync_to_async(move, thread_sensitive=True)
arun_now = sync_to_async(run_now, thread_sensitive=True)
aredrive = sync_to_async(redrive, thread_sensitive=True)
aredrive_group = sync_to_async(redrive_group, thread_sensitive=True)
astep_happened = sync_to_async(step_happened, thread_sensitive=True)
aforget_step = sync_to_async(forget_step, thread_sensitive=True)
ago_on = sync_to_async(go_on, thread_sensitive=True)
aapprove = sync_to_async(approve, thread_sensitive=True)
areject = sync_to_async(reject, thread_sensitive=True)
aerase = sync_to_async(erase, thread_sensitive=True)
ahold = sync_to_async(hold, thread_sensitive=True)
arelease = sync_to_async(release, thread_sensitive=True)
areconcile = sync_to_async(reconcile, thread_sensitive=True)
apreview = sync_to_async(preview, thread_sensitive=True)
awhat_if = sync_to_async(what_if, thread_sensitive=True)
aforeseen = sync_to_async(foreseen, thread_sensitive=True)
adead_letters = sync_to_async(dead_letters, thread_sensitive=True)
aexplain = sync_to_async(explain, thread_sensitive=True)
