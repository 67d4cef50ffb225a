"""The one exception that stands for a user's mistake or an absent thing, as opposed to a bug."""


class UserError(Exception):
    """A message a person can act on: what was found, what was expected, what to do next.

    Commands print the message without a traceback and exit with status 1.
    """
