"""Benchmarks: each prints median and spread of several runs; none is a test."""

__all__: list[str] = []
