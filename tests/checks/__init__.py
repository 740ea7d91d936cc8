"""System checks: each sees its mistake, says what to do about it, and is silent otherwise."""


def ids(found):
    """Ids of the messages found."""
    return [message.id for message in found]
