"""A calendar of what is ahead of each person, for their calendar program; needs the extra ``calendar``."""
