"""Which words of a page a person cannot read: covered, cut off, outside the window, or too faint; and the status line,
read on a desk and on a telephone."""

PATIENCE_MS = 60_000  # while something moves or fades, on a busy machine
WIDTHS = (1280, 390)

UNREADABLE = """(root) => {
  const all = document.createElement("style");
  all.textContent = "* { pointer-events: auto !important; transition: none !important }";
  document.head.append(all); // what lets clicks through covers too
  const colour = (text) => {
    const [r, g, b, alpha = 1] = text.match(/[\\d.]+/g).map(Number);
    return { rgb: [r, g, b], alpha };
  };
  const opacity = (e) => (e ? getComputedStyle(e).opacity * opacity(e.parentElement) : 1);
  const over = (top, share, below) => below.map((each, k) => share * top[k] + (1 - share) * each);
  const light = (rgb) => {
    const linear = rgb.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05;
  };
  // How visible what an element itself paints is: 0 to 1. A picture or a text counts as paint.
  const paint = (e) => {
    const style = getComputedStyle(e);
    const own = [...e.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const whole = own || style.backgroundImage !== "none" || /^(img|svg|canvas|audio)$/i.test(e.tagName);
    return opacity(e) * (whole ? 1 : colour(style.backgroundColor).alpha);
  };
  // Why a person cannot read the word in that box; null for one that can be read.
  const wrong = (element, box) => {
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    if (box.left < 0 || box.right > innerWidth || y < 0 || y > innerHeight) return "is outside the window";
    const stack = document.elementsFromPoint(x, y);
    const at = stack.indexOf(element);
    if (at < 0) return "is cut off";
    const above = stack.slice(0, at).find((e) => !element.contains(e) && paint(e) > 0.1);
    if (above) return `is covered by ${above.tagName}.${above.className}`;
    const behind = stack.slice(at).reverse().reduce((below, e) => {
      const { rgb, alpha } = colour(getComputedStyle(e).backgroundColor);
      return over(rgb, alpha * opacity(e), below);
    }, [255, 255, 255]);
    const { rgb, alpha } = colour(getComputedStyle(element).color);
    const [a, b] = [light(over(rgb, alpha * opacity(element), behind)), light(behind)];
    const contrast = Math.max(a, b) / Math.min(a, b);
    return contrast < 4.5 ? `is too faint, ${contrast.toFixed(1)}` : null;
  };
  const found = [];
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const [text, element] = [texts.currentNode, texts.currentNode.parentElement];
    for (const word of text.data.matchAll(/\\S+/g)) {
      const range = document.createRange();
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      for (const box of range.getClientRects()) {
        const why = wrong(element, box);
        if (why) found.push(`${word[0]} ${why}`);
      }
    }
  }
  all.remove();
  return found;
}"""


def unreadable(page, selector, there=True):
    """The words of a place on the page that a person cannot read, each with what is wrong; `there`: once it is scrolled
    to."""
    from playwright.sync_api import TimeoutError

    # Scrolled to before each look: what loads late moves the place away again.
    scroll = "place.scrollIntoView({ block: 'center', behavior: 'instant' });" if there else ""
    look = f"(() => {{ const place = document.querySelector({selector!r}); {scroll} return ({UNREADABLE})(place) }})()"
    try:
        page.wait_for_function(f"{look}.length === 0", timeout=PATIENCE_MS)
    except TimeoutError:
        return page.evaluate(look)
    return []


def watch_streams(page):
    """Notes the page's open streams of answers, for `settled`."""
    page.streams = set()
    page.on("request", lambda request: page.streams.add(request) if "/queue/data" in request.url else None)
    for ended in ("requestfinished", "requestfailed"):
        page.on(ended, lambda request: page.streams.discard(request))


def settled(page):
    """Waits until all is answered. What asks just when Gradio closes a stream of answers gets none."""
    for _ in range(PATIENCE_MS // 20):
        if not page.streams:
            return
        page.wait_for_timeout(20)
    raise AssertionError("a stream of answers does not end")


def seen(page, selector):
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 844})
        wrong = unreadable(page, selector)
        assert not wrong, f"at {width} pixels: {'; '.join(wrong)}"


def said(page, what, look="status"):
    """Waits for a line of status that contains the words, whether a person sees it or not."""
    from playwright.sync_api import expect

    expect(page.locator(f"#status p[class='{look}']")).to_contain_text(what, timeout=PATIENCE_MS)
    settled(page)


def says(page, what, look="status"):
    """Reads such a line."""
    said(page, what, look)
    seen(page, "#status p")


def refuses(page, what):
    """Reads it in red."""
    says(page, what, "status wrong")
