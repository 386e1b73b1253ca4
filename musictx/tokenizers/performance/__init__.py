"""The performance encoding: a piano's events on a clock of 10 ms."""

from musictx.tokenizers.performance.tokens import PerformanceTokenizer

__all__ = ["PerformanceTokenizer"]
