"""The score encoding: bars of parts."""

from musictx.tokenizers.score.tokens import ScoreTokenizer

__all__ = ["ScoreTokenizer"]
