"""Books of tunes and movements: each piece is a piece of the store, and every road reads the same files."""

import tracemalloc
import zipfile
from itertools import product

import pytest
from notated import ABC, KERN, MEI

from musictx.config.prepare import PrepareScoresConfig
from musictx.config.web import Limits
from musictx.data import source
from musictx.data.corpora.folder import prepare_scores
from musictx.data.recipe import encode_score
from musictx.data.source import open_source
from musictx.data.store import Store
from musictx.errors import ConfigError, MidiError
from musictx.music.notation.several import several
from musictx.music.read import read_tracks, score_of
from musictx.tokenizers.score import ScoreTokenizer
from musictx.web.uploads import read_upload

MB = 2**20
TUNES = [f"X:{5 + n}\nT:Air {n}\nK:{key}\nCDE|FGA|Bcd|{key.lower()}3|]\n" for n, key in enumerate("CDEFG")]
MOVEMENT = MEI[MEI.index("<mdiv>") : MEI.index("</body>")]
MOVEMENTS = [MOVEMENT.replace('pname="c"', f'pname="{name}"', 1) for name in "cda"]


def pieces(path):
    with open_source(path) as items:
        return {item.name: item.load(MB) for item in items}


def heard(data, name):
    return [part.notes for part in score_of(data, name)[0].parts]


@pytest.mark.parametrize(("head", "ends"), product(["", "%abc-2.1\nM:3/4\nL:1/4\n\n"], ["\n", "\r\n", "\r"]))
def test_each_tune_of_a_book_is_as_it_is_alone(tmp_path, head, ends):
    book = (head + "\n".join(TUNES)).replace("\n", ends).encode()
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "deep" / "b.ABC").write_bytes(book)
    (tmp_path / "in" / "one.abc").write_text(head + TUNES[0])
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.writestr("deep/b.ABC", book)
        archive.writestr("one.abc", head + TUNES[0])
    alone = [heard((head + tune).encode(), "t.abc") for tune in TUNES]
    names = [f"b.ABC/{n}.ABC" for n in range(1, 6)]
    for path in (tmp_path / "in", tmp_path / "in.zip"):
        found = pieces(path)
        assert list(found) == [*(f"deep/{name}" for name in names), "one.abc"]
        assert [heard(data, name) for name, data in found.items()] == [*alone, alone[0]]
        assert {score_of(data, name)[1]["tunes"] for name, data in found.items()} == {0}
    found = pieces(tmp_path / "in" / "deep" / "b.ABC")  # a book is given as it is, too
    assert list(found) == names
    assert [heard(data, name) for name, data in found.items()] == alone


def test_each_movement_of_mei_is_as_it_is_alone(tmp_path):
    (tmp_path / "trio.mei").write_text(MEI.replace(MOVEMENT, "".join(MOVEMENTS)))
    alone = [heard(MEI.replace(MOVEMENT, each).encode(), "trio.mei") for each in MOVEMENTS]
    assert [heard(data, name) for name, data in pieces(tmp_path).items()] == alone
    assert list(pieces(tmp_path)) == [f"trio.mei/{n}.mei" for n in (1, 2, 3)]
    assert len({str(each) for each in alone}) == 3


@pytest.mark.parametrize(
    "music",
    [
        "<!-- {0} -->{0}<!-- <score> -->{1}{2}",
        "<mdiv>{0}{1}</mdiv>{2}",
        "<mdiv>{0}<mdiv>{1}</mdiv></mdiv><mdiv><mdiv><score/></mdiv>{2}</mdiv>",
        "<mdiv><score/></mdiv><mdiv><score /></mdiv>{0}<mdiv><score></score></mdiv>{1}{2}",
    ],
)
def test_movements_are_those_of_the_tree(tmp_path, music):
    whole = MEI.replace(MOVEMENT, music.format(*MOVEMENTS))
    (tmp_path / "trio.mei").write_text(whole)
    alone = [heard(MEI.replace(MOVEMENT, each).encode(), "trio.mei") for each in MOVEMENTS]
    found = [heard(data, name) for name, data in pieces(tmp_path).items()]
    assert [each for each in found if each] == alone
    assert heard(whole.encode(), "trio.mei") == alone[0]
    assert score_of(whole.encode(), "trio.mei")[1]["movements"] == 2


def test_files_that_only_look_like_books_are_one_file_each(tmp_path):
    (tmp_path / "a.mei").write_text("<mei>" + "<score >" * 20_000)
    (tmp_path / "b.mei").write_text("<mei>" + "</score >" * 20_000)
    found = pieces(tmp_path)
    assert list(found) == ["a.mei", "b.mei"]
    for name, data in found.items():
        assert str(encode_score(data, name)).startswith("it cannot be read as notation")


@pytest.mark.parametrize("cut", [100, 200, -10, -30])
def test_a_damaged_packed_score_is_refused_in_words(tmp_path, cut):
    with zipfile.ZipFile(tmp_path / "t.mxl", "w") as score:
        score.writestr("META-INF/container.xml", "<container/>" * 20)
    whole = (tmp_path / "t.mxl").read_bytes()
    for damaged in (whole[:cut], whole[:cut] + bytes(20) + whole[cut + 20 :]):
        (tmp_path / "t.mxl").write_bytes(damaged)
        with pytest.raises((ConfigError, MidiError)):
            pieces(tmp_path / "t.mxl")


def test_texts_of_books_do_not_stay_in_memory(tmp_path):
    for n in range(20):
        (tmp_path / f"{n}.abc").write_text("\n".join(TUNES[:2]) + "%" + 2**20 * "a" + "\n")
    tracemalloc.start()
    with open_source(tmp_path) as items:
        held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(items) == 40
    assert held < 8 * MB


@pytest.mark.parametrize("field", ["X:", "X: ", "X:\t7", "X:007 % of the book", "X:12a", "X: from the attic"])
def test_a_number_or_none_begins_a_tune(tmp_path, field):
    (tmp_path / "b.abc").write_text("\n".join([TUNES[0], TUNES[1].replace("X:6", field), TUNES[2]]))
    found = pieces(tmp_path)
    assert [heard(data, name) for name, data in found.items()] == [heard(each.encode(), "t.abc") for each in TUNES[:3]]


def test_words_within_a_field_begin_no_tune(tmp_path):
    told = TUNES[0].replace("K:", "H:From the book\nX: 12 of O'Neill\nK:")
    (tmp_path / "b.abc").write_text(told + TUNES[1])
    found = pieces(tmp_path)
    assert [heard(data, name) for name, data in found.items()] == [heard(each.encode(), "t.abc") for each in TUNES[:2]]


@pytest.mark.parametrize(
    "book",
    ["X:1 first\nT:a\nK:C\nCDEF|\nX:2 second\nT:b\nK:G\nGABc|\n", "X:1 (v)\nK:C\nCDEF|\n \t\nX:2 (v)\nK:G\nGABc|\n"],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_number_with_words_begins_a_tune(tmp_path, book, end):
    (tmp_path / "b.abc").write_text(book.replace("\n", end), newline="")
    assert [*pieces(tmp_path)] == ["b.abc/1.abc", "b.abc/2.abc"]
    heads = "X:1\nK:C\nCDEF|\n", "X:1\nK:G\nGABc|\n"
    assert [heard(data, "t.abc") for data in pieces(tmp_path).values()] == [
        heard(each.encode(), "t.abc") for each in heads
    ]


def test_blank_lines_before_xml_cut_no_book_short(tmp_path):
    scores = "".join(f"<score><p n='{n}'/></score>" for n in range(2))
    (tmp_path / "b.mei").write_text(f"\n <?xml version='1.0'?><mei>{scores}</mei>")
    assert len(pieces(tmp_path)) == 2


def test_no_more_tunes_are_cut_apart_than_a_store_has(monkeypatch):
    monkeypatch.setattr("musictx.music.notation.several.MOST_PIECES", 4)
    assert len(several(b"X:\n" * 1000, "abc", "").spans) == 5  # too many, as four would not say


def test_a_book_is_a_corpus_and_a_tune_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "b.abc").write_text("\n".join([*TUNES, "X:9\nK:C\nz3|]\n"]))
    config = PrepareScoresConfig(path=str(tmp_path / "b.abc"), out=str(tmp_path / "store"), workers=1)
    manifest = prepare_scores(config)
    assert manifest.extra["files"] == 6
    assert dict(manifest.dropped).keys() == {"b.abc/6.abc"}
    store = Store(tmp_path / "store", "score")
    splits = [store.split(name) for name in manifest.splits]
    ids = {name: ids.tolist() for split in splits for name, ids in zip(split.names, split, strict=True)}
    for n, tune in enumerate(TUNES):
        expected = ScoreTokenizer().encode_notation(score_of(tune.encode(), "")[0])
        assert ids[f"b.abc/{n + 1}.abc"] == expected.tolist()


def test_one_tune_is_no_corpus_and_too_many_are_refused(tmp_path, monkeypatch):
    (tmp_path / "b.abc").write_text(TUNES[0])
    with pytest.raises(ConfigError, match="it is one score"):
        pieces(tmp_path / "b.abc")
    (tmp_path / "b.abc").write_text("\n".join(TUNES))
    monkeypatch.setattr(source, "MOST_PIECES", 4)
    with pytest.raises(MidiError, match="it has 5 pieces, and at most 4 of all books are read"):
        pieces(tmp_path)
    (tmp_path / "c.abc").write_text("\n".join(TUNES[:3]))
    (tmp_path / "b.abc").write_text("\n".join(TUNES[:2]))
    with pytest.raises(MidiError, match="c.abc: it has 3 pieces"):
        pieces(tmp_path)
    monkeypatch.setattr(source, "MOST_TEXT", 900)
    (tmp_path / "c.abc").write_text("%" + 500 * "a" + "\n" + "\n".join(TUNES[:2]))
    with pytest.raises(MidiError, match="c.abc: it has 2 pieces"):
        pieces(tmp_path)
    (tmp_path / "b.abc").write_bytes(b"")
    with pytest.raises(MidiError, match="the file is empty"):
        pieces(tmp_path)


NO_NUMBER = ABC.replace("%abc\n", "").replace("X:1\n", "")  # some programs leave it out
TEXTS = [("t.abc", ABC), ("t.abc", NO_NUMBER), ("t.krn", KERN), ("t.mei", MEI), ("t", ABC), ("t", KERN)]


@pytest.mark.parametrize(("text", "coding"), product(TEXTS, ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"]))
def test_the_shell_preparing_and_the_page_read_the_same_files(text, coding):
    name, data = text[0], (b"\xfe\xff" if coding == "utf-16-be" else b"") + text[1].encode(coding)
    written, _ = score_of(data, name)
    assert encode_score(data, name)[0] == ScoreTokenizer().encode_notation(written).tobytes()
    assert len(read_upload(data, name, Limits()).score) == len(read_tracks(data, name).merge())
    assert heard(text[1].encode(), name) == [part.notes for part in written.parts]


def test_damaged_notation_is_called_so_by_its_name():
    assert str(encode_score(b"<mei xmlns", "t.mei")).startswith("it cannot be read as notation")
    assert encode_score(b"Dear diary", "t.krn") == "it has no notes"
    assert str(encode_score(b"Dear diary", "t.mid")).startswith("not a MIDI file")


def test_an_archive_of_scores_in_plain_text_or_packed_is_no_score(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.mxl", "w") as score:
        score.writestr("META-INF/container.xml", "<container/>")
    packed = (tmp_path / "t.mxl").read_bytes()
    for name, data in (("t.abc", ABC.encode()), ("t.krn", KERN.encode()), ("t.mxl", packed)):
        with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:  # nothing is compressed
            archive.writestr(name, data)
        assert list(pieces(tmp_path / "all.zip")) == [name]
    with pytest.raises(ConfigError, match="it is one score"):
        pieces(tmp_path / "t.mxl")
