"""Tests of the Open Job Specification."""
