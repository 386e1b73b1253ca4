"""Names of tracks that are drum kits, and those that are not."""

import pytest

from musictx.music.drum_kits import is_kit

KITS = """Drums;Drum Kit;DRUM RACK;808 Kick;Kick1;Snare_1;01_Drums;Drums_L;Drums2;Hi-Hat;Hi Hats;Closed Hat;Tom 1
Floor Tom;Toms;DrumLoop;Bassdrum;Snare & Bass Drum;Kick + Bass Drum;Ride;TR-808 Clap;Perc;Perc Loop;Percussion
Percussions;Percusi\u00f3n;Bateri\u0301a;Schlagzeug;Gro\u00dfe Trommel;Batterie
Batteria;Drums (909)""".replace("\n", ";")
OTHERS = """;Lead;Tom;The Drum;I Get a Kick Out of You;Hats Off to Larry;Clap Your Hands;Drum & Bass;Bass & Drums;Bass
Piano + Drums;Drums, Bass;Kick Bass;Drum Bass;Steel Drums;Steel Drum;Tongue Drum;Log Drum;Hang Drum;Pitched Percussion
Mallet Percussion;Marimba (Percussion);Glockenspiel (perc.);Timpani Percussion;Perc Organ;Melodic Toms
Piano (no drums);Synth Drum Lead;Ab;Kit;Loop;808""".replace("\n", ";")


@pytest.mark.parametrize("name", KITS.split(";"))
def test_a_kit_or_a_part_of_one(name):
    assert is_kit(name)


@pytest.mark.parametrize("name", OTHERS.split(";"))
def test_a_name_that_says_anything_else_is_no_kit(name):
    assert not is_kit(name)
