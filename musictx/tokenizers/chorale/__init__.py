"""The chorale encoding: four voices on a grid of sixteenths."""

from musictx.tokenizers.chorale.tokens import ChoraleTokenizer

__all__ = ["ChoraleTokenizer"]
