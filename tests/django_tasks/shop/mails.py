"""A host's backend of mails: its page in the docs shows what follows."""

from django.core.mail import EmailMultiAlternatives
from django.core.mail.backends.base import BaseEmailBackend
from django.utils.module_loading import import_string

from tests.django_tasks.framework import task

SENDS = "django.core.mail.backends.smtp.EmailBackend"


class QueuedEmail(BaseEmailBackend):
    def send_messages(self, email_messages):
        for message in email_messages:
            if message.attachments:  # Files are no JSON: such a mail is sent at once.
                import_string(SENDS)().send_messages([message])
                continue
            mail = {name: getattr(message, name) for name in ("from_email", "to", "cc", "bcc", "reply_to")}
            mail |= {"subject": str(message.subject), "body": str(message.body), "headers": message.extra_headers}
            deliver.enqueue(mail, [list(each) for each in getattr(message, "alternatives", [])])
        return len(email_messages)


@task
def deliver(mail, alternatives):
    message = EmailMultiAlternatives(**mail)
    for content, kind in alternatives:
        message.attach_alternative(content, kind)
    return import_string(SENDS)().send_messages([message])
