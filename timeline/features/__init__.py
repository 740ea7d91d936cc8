"""What can be left out of the product: each feature in a folder of its own. See ``docs/explanation/inside.md``."""

from typing import Final

# In this order they are asked; a folder that is not named here takes no part.
FEATURES: Final = (
    "steps",
    "limits",
    "machines",
    "waits",
    "fan_out",
    "holds",
    "recurring",
    "bulk_actions",
    "plans",
    "sweep",
    "maintenance",
)
