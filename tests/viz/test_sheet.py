"""The listening sheet: what a file of it has, and in a real browser what a person does with it."""

import csv

import chromium
import numpy as np
import pytest

from musictx.viz.sheet import Trial, listening_sheet, mp3, orders


def sheet() -> str:
    beep = [mp3((0.2 * np.sin(np.arange(22_050) * pitch)).astype(np.float32)) for pitch in (0.03, 0.05, 0.07)]
    trials = [
        Trial(beep[0], beep[1:], ["the composer", "<b>LSTM"]),
        Trial(beep[1], beep[::2], ["<b>LSTM", "the composer"]),
    ]
    return listening_sheet(trials, "the composer", "tempered", "Music: R&D <x>")


def test_text_from_outside_is_escaped_and_the_sheet_has_a_sign_its_own():
    page = sheet()
    assert "Music: R&amp;D &lt;x&gt;" in page
    assert "LSTM" not in page
    assert "tempered" not in page
    assert page == sheet()
    assert "$" not in page.split("<script>")[0]


@chromium.needed
def test_a_person_listens_answers_downloads_and_is_scored(tmp_path):
    file = tmp_path / "sheet.html"
    file.write_text(sheet(), "utf-8")
    logged = []
    with chromium.chromium() as browser, chromium.visiting(browser, "file:") as open_page:
        page = open_page()
        page.on("console", lambda message: logged.append(message))
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto(file.as_uri())

        def saved():
            with page.expect_download() as download:
                page.click("#csv")
            return list(csv.DictReader(download.value.path().read_text("utf-8").splitlines()))

        ready = "async a => { if (a.readyState < 1) await new Promise(r => a.onloadedmetadata = r); return a.duration }"
        lengths = [player.evaluate(ready) for player in page.locator("audio").element_handles()]
        assert len(lengths) == 6
        assert max(lengths) == min(lengths) == pytest.approx(0.5, abs=0.06)
        assert page.inner_text("#progress") == "0 of 6 questions answered."
        page.fill("#listener", 'Clara "C." S., the 1st')
        page.check("[name=rating-1-A][value='5']")
        page.check("[name=rating-1-B][value='2']")
        page.focus("[name=rating-2-A][value='1']")
        page.keyboard.press("ArrowRight")  # the keyboard is enough
        page.check("[name=choice-1][value=A]")
        page.check("[name=choice-2][value=B]")
        page.reload()
        assert page.inner_text("#progress") == "5 of 6 questions answered."
        assert page.is_checked("[name=rating-2-A][value='2']")
        assert "LSTM" not in page.content()
        rows = saved()
        assert {row["source"] for row in rows} == {""}

        assert not page.is_visible("#open")
        page.click("summary")
        assert not page.is_visible("#scores")
        page.click("#open")
        scores = page.inner_text("#scores")
        assert "You found the composer in 2 of 2 pieces. Guessing finds 1.0 on average" in scores
        assert "with probability 0.25." in scores
        assert page.evaluate("byChance(3, 8, 3)") == pytest.approx(0.5318, abs=1e-4)  # 1 - (2^8 + 8·2^7 + 28·2^6) / 3^8
        cells = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
        assert page.locator("#scores tr").evaluate_all(cells) == [
            ["who", "mean rating", "ratings", "taken for the composer"],
            ["the composer", "5.00", "1", "2"],
            ["<b>LSTM", "2.00", "2", "0"],
            ["piece", "A", "B", "you said"],
            ["1", "the composer", "<b>LSTM", "A"],
            ["2", "<b>LSTM", "the composer", "B"],
        ]
        assert "tempered" in scores
        assert page.is_disabled("[name=choice-1][value=B]")
        page.reload()
        assert page.is_visible("#scores")
        assert page.is_disabled("[name=choice-1][value=B]")
        rows = saved()
        assert [row["source"] for row in rows] == ["the composer", "<b>LSTM", "<b>LSTM", "the composer"]
        assert [row["chosen"] for row in rows] == ["true", "false", "false", "true"]
        assert rows[3]["rating"] == ""
        assert rows[0]["listener"] == 'Clara "C." S., the 1st'
        page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('full') } }")
        page.evaluate("() => { answers = {}; key = null; remember(); show() }")
        assert "0 of 6 questions answered." in page.inner_text("#progress")
        page.click("#again")
        page.wait_for_function("document.getElementById('progress').textContent.startsWith('0 of')")
        assert page.is_enabled("[name=choice-1][value=B]")
        assert page.input_value("#listener") == ""
        assert [message.text for message in logged if message.type == "error"] == []


def test_no_letter_is_anybodys():
    rows = orders(["a", "b", "c"], 8, 0)
    assert [sorted(row) for row in rows] == [["a", "b", "c"]] * 8
    for letter in range(3):
        counts = [[row[letter] for row in rows].count(name) for name in "abc"]
        assert sorted(counts) == [2, 3, 3]
    assert rows == orders(["a", "b", "c"], 8, 0)
    assert rows != orders(["a", "b", "c"], 8, 1)
    assert len({tuple(orders(["a", "b"], 1, seed)[0]) for seed in range(20)}) == 2  # a single piece too is by chance
