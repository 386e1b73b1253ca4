import os
import zipfile

import pytest

from musictx.config.prepare import PrepareFolderConfig
from musictx.config.train import TokenizerConfig
from musictx.data.corpora.folder import prepare_folder
from musictx.data.source import open_source
from musictx.errors import ConfigError, MidiError, StoreError, UserError
from musictx.files import printable
from musictx.music.read import SUFFIXES

MB, PLAIN = 2**20, TokenizerConfig(name="performance")


def names(path, suffixes=SUFFIXES):
    with open_source(path, suffixes) as items:
        return [item.name for item in items]


def zipped(path, method=zipfile.ZIP_STORED, **members):
    with zipfile.ZipFile(path / "in.zip", "w", method) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.mid", content)
    return path / "in.zip"


def test_midi_files_are_found_at_any_depth_in_a_folder_and_in_a_zip(tmp_path):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    wanted = ["a.mid", "b.MIDI", "deep/c.kar", "deep/d.rmi"]
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        for name in [*wanted, "notes.txt"]:
            archive.writestr(name, b"x" + name.encode())
    for name in [*wanted, "notes.txt"]:
        (tmp_path / "in" / name).write_bytes(b"x" + name.encode())
    for path in (tmp_path / "in", tmp_path / "in.zip"):
        assert names(path) == wanted
        with open_source(path) as items:
            assert [item.load(MB) for item in items] == [b"x" + name.encode() for name in wanted]


def test_a_stamp_changes_with_the_content(tmp_path):
    def stamp(content):
        (tmp_path / "a.mid").write_bytes(content)
        with open_source(tmp_path) as items:
            return items[0].stamp

    assert stamp(b"one") != stamp(b"three")


def test_a_link_that_leads_out_is_named_and_not_followed(tmp_path):
    top, other = tmp_path / "top", tmp_path / "other"
    for folder in (top / "in", other):
        folder.mkdir(parents=True)
        (folder / "a.mid").write_bytes(b"x")
    (top / "out").symlink_to(other)
    (top / "b.mid").symlink_to(other / "a.mid")
    (top / "same").symlink_to(top / "in")
    with open_source(top) as items:
        found = {item.name: item for item in items}
    assert set(found) == {"in/a.mid", "b.mid", "out/"}
    for name in ("b.mid", "out/"):
        with pytest.raises(MidiError, match="a link"):
            found[name].load(100)


def test_a_loop_of_links_ends_and_a_linked_folder_is_read_once(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.mid").write_bytes(b"x")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    (tmp_path / "z").symlink_to(tmp_path / "a")
    assert names(tmp_path) == ["a/x.mid"]


def test_pipes_folders_and_dangling_links_named_like_music_are_named(tmp_path):
    os.mkfifo(tmp_path / "pipe.mid")
    (tmp_path / "gone.mid").symlink_to(tmp_path / "nowhere")
    (tmp_path / "empty.mid").write_bytes(b"")
    reasons = {}
    with open_source(tmp_path) as items:
        for item in items:
            with pytest.raises(MidiError) as caught:
                item.load(MB)
            reasons[item.name] = caught.value.reason
    assert reasons == {
        "pipe.mid": "not a file: it is a folder, pipe or device",
        "gone.mid": "cannot be read: No such file or directory",
        "empty.mid": "the file is empty",
    }


def test_a_zip_bomb_is_never_unpacked_whole(tmp_path):
    bomb = zipped(tmp_path, zipfile.ZIP_DEFLATED, bomb=bytes(50 * MB))
    assert bomb.stat().st_size < MB / 10
    with open_source(bomb) as items, pytest.raises(MidiError, match="bomb.mid: .* 2 MB; file_mb="):
        items[0].load(2 * MB)


def test_names_that_climb_out_of_a_zip_write_nothing(tmp_path):
    with open_source(zipped(tmp_path, **{"../../evil": b"x"})) as items:
        assert (items[0].name, items[0].load(MB)) == ("../../evil.mid", b"x")
    assert [p.name for p in tmp_path.iterdir()] == ["in.zip"]


def test_damaged_and_encrypted_members_are_refused_one_by_one(tmp_path):
    archive = zipped(tmp_path, a=b"AAAAAAAA", b=b"BBBBBBBB")
    raw = archive.read_bytes()
    raw = raw.replace(b"AAAAAAAA", b"AAAAAAAX")  # its checksum fails
    at = raw.rindex(b"PK\x01\x02") + 8
    raw = raw[:at] + b"\x01" + raw[at + 1 :]  # b.mid claims to be encrypted
    archive.write_bytes(raw)
    with open_source(archive) as items:
        with pytest.raises(MidiError, match=r"a.mid: .*CRC-32"):
            items[0].load(MB)
        with pytest.raises(MidiError, match=r"b.mid: .*encrypted"):
            items[1].load(MB)


def test_names_that_are_not_utf8_or_not_printable_are_shown_escaped(tmp_path):
    with open(os.fsencode(tmp_path) + b"/caf\xe9\n.mid", "wb") as file:
        file.write(b"x")
    with open_source(tmp_path) as items:
        assert (items[0].name, items[0].load(MB)) == ("caf\\xe9\\n.mid", b"x")
    assert printable("Für Elise, no. 1.mid") == "Für Elise, no. 1.mid"


def test_what_is_no_source_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"^path=.*nowhere: "):
        names(tmp_path / "nowhere")
    with pytest.raises(StoreError, match=r"no .mid, .midi, .kar, .rmi, .mid.gz, .musicxml, .* file in .* below"):
        names(tmp_path)
    (tmp_path / "x.zip").write_text("no zip")
    with pytest.raises(ConfigError, match=r"^path=.*x.zip: "):
        names(tmp_path / "x.zip")
    with pytest.raises(StoreError, match=r"no .mid, .* file in .*in.zip"):
        names(zipped(tmp_path))
    raw = bytearray(zipped(tmp_path, a=b"x").read_bytes())
    raw[raw.rindex(b"PK\x01\x02") + 6] = 99  # of a version yet to come
    (tmp_path / "in.zip").write_bytes(raw)
    with pytest.raises(ConfigError, match=r"^path=.*in\.zip: .* 9\.9"):
        names(tmp_path / "in.zip")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.midi2", b"SMF2CLIP", r"is a clip of MIDI 2\.0, .* Standard MIDI File"),
        ("a.mscx", b"<museScore>", "a.mscx: it is a score of MuseScore, .* export MusicXML or MIDI"),
        ("a.mscz", b"", "a.mscz is a score of MuseScore, .* export MusicXML or MIDI"),
    ],
)
def test_music_that_is_no_midi_names_the_way_as_a_file_in_a_folder_and_in_a_zip(tmp_path, name, content, says):
    (tmp_path / "in").mkdir()
    file, way = tmp_path / "in" / name, says.rpartition(".* ")[2]
    if name == "a.mscz":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("META-INF/container.xml", b"<container/>")
            archive.writestr("a.mscx", b"<museScore/>")
    else:
        file.write_bytes(content)
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.write(file, f"deep/{name}")
        archive.writestr("read.me", b"x")
    (tmp_path / "in" / "read.me").write_bytes(b"x")
    with pytest.raises(UserError, match=says):
        names(file)
    kind = file.suffix.lower()
    for path in (tmp_path / "in", tmp_path / "in.zip"):
        for suffixes in (SUFFIXES, (".mid",)):
            with pytest.raises(StoreError, match=rf"no .mid.* in .*: the {kind} files are not MIDI files: .*{way}"):
                names(path, suffixes)
        with pytest.raises(StoreError, match=rf"no .mid.*: the {kind} files .*{way}"):
            prepare_folder(PrepareFolderConfig(path=str(path), out=str(tmp_path / "store"), tokenizer=PLAIN))
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("name", "content"), [("a.krn", b"**kern\n4c\n*-\n"), ("a.mxl", b""), ("tune", b"X:1\nK:C\nC")]
)
def test_one_score_is_no_folder(tmp_path, name, content):
    if name == "a.mxl":
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("META-INF/container.xml", b"<container/>")
    else:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match="it is one score"):
        names(tmp_path / name)
    if name != "tune":
        assert names(tmp_path) == [name]


def test_a_method_that_unpacks_without_bound_is_refused(tmp_path):
    path = zipped(tmp_path, zipfile.ZIP_LZMA, a=b"x")
    with open_source(path) as items, pytest.raises(MidiError, match="compression method"):
        items[0].load(MB)


def test_a_folder_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    (tmp_path / "shut").mkdir()
    (tmp_path / "a.mid").write_bytes(b"x")
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("shut"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with open_source(tmp_path) as items:
        assert [item.name for item in items] == ["a.mid", "shut/"]
        with pytest.raises(MidiError, match="^shut/: .*denied"):
            items[1].load(MB)
