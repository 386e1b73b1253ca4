"""What playing live can be told."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from musictx.config.train import AttentionConfig
from musictx.config.use import RulesConfig, SamplerConfig


@dataclass
class JamConfig:
    """musictx jam: continue what a person plays, whenever they pause."""

    # piano or chorale, or a performance or chorale model that `musictx train` made; null: piano, unless a file plays
    # itself that is four voices on a grid
    bundle: str | None = None
    # the player: a MIDI port by its name or a part of it, or a MIDI file that plays itself; elise, gymnopedie, chorale
    input: str = MISSING
    output: str = MISSING  # where the replies sound: a MIDI port, or a MIDI file for the whole session
    record: str | None = None  # a MIDI file for the whole session, where the replies go to a port
    virtual: bool = False  # make the ports of these names, for other programs to connect to
    realtime: bool | None = None  # false: a clock that jumps, for files; null: only where both are files
    pause_s: float = 0.6  # so long without a key held: the phrase is over
    phrase_s: float = 0.0  # shorter phrases are not answered yet: what comes next belongs to them
    reply_seconds: float | None = 8.0  # null: as long as the phrase
    bpm: float | None = None  # quarters a minute of a chorale model's grid; null: the file's, or 100
    channel: int = 1  # of the replies, 1 to 16
    window: int | None = None  # tokens the model looks back; null: its own
    seed: int = 0
    overwrite: bool = False
    device: str = "cpu"
    threads: int = 1  # of the processor, for the model: a second one helps large models alone, and waits on a busy core
    sampler: SamplerConfig = field(default_factory=SamplerConfig)
    rules: RulesConfig = field(default_factory=lambda: RulesConfig(max_silence_s=1.0, max_note_s=8.0))
    attention: AttentionConfig = field(default_factory=AttentionConfig)
