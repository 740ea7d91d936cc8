"""Metrics for Prometheus; needs the extra ``prometheus``."""
