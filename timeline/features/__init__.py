"""What can be left out of the product: each feature in a folder of its own. See ``docs/explanation/inside.md``."""
