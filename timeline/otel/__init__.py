"""OpenTelemetry: spans of what is emitted and run, whose traces go on in the worker, days later."""
