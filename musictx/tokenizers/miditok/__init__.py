"""MidiTok's encodings, and byte pairs on top."""

from musictx.tokenizers.miditok.tokens import KINDS, MidiTokTokenizer

__all__ = ["KINDS", "MidiTokTokenizer"]
