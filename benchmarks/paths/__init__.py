"""
How much code a reader meets on six paths through the package: ``make paths``.

``walking.py`` goes the paths, ``tracing.py`` sees what is entered, ``counting.py`` counts it, ``__main__.py`` prints.
"""
