"""What can be left out of the product: each feature in a folder of its own. See ``docs/explanation/inside.md``."""

from typing import Final

# In this order they are asked; a folder that is not named here takes no part.
FEATURES: Final = (
    "steps",
    "limits",
    "waits",
    "sleep",
    "machines",
    "fan_out",
    "on_failure",
    "debounce",
    "recurring",
    "holds",
    "rates",
    "bulk_actions",
    "plans",
    "sweep",
    "maintenance",
)
