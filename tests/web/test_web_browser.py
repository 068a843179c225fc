"""The page in Chromium: trees, links, keyboard, screen readers, layout, themes, offline use."""

import gzip
import itertools
import json
import re
import shutil
import time
import xml.etree.ElementTree as ET

import pytest

from helpers import browsers
from helpers.commands import ROOT, imported
from keras_onlstm.parser import Parser
from keras_onlstm.parsing import brackets, vote

WEB = ROOT / "web"
RUNTIME = ROOT / "export" / "javascript" / "node_modules" / "onnxruntime-web"
CASES = json.loads((WEB / "tests" / "cases.json").read_text(encoding="utf-8"))
SENTENCE = "The old man saw the boats"

pytestmark = pytest.mark.backend("tensorflow")


@pytest.fixture(scope="module")
def chromium():
    browsers.path()
    if not RUNTIME.is_dir():
        pytest.skip(f"onnxruntime-web is not installed: npm install in {RUNTIME.parents[1]}")
    yield from browsers.started()


@pytest.fixture(scope="module")
def scripts():
    names = "build", "serve"
    with imported(WEB, *names) as modules:
        yield dict(zip(names, modules, strict=True))


@pytest.fixture(scope="module")
def folder(chromium, scripts, tmp_path_factory):
    """The folder of the built page."""
    folder = tmp_path_factory.mktemp("web")
    scripts["build"].build(folder, check=False)
    return folder


class Page:
    """The page in a tab. Errors in the page fail the test in `check`."""

    def __init__(self, context, address, fragment=""):
        self.address, self.errors, self.requests = address, [], []
        context.on("request", self._requested)
        self.tab = context.new_page()
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.on("dialog", lambda dialog: (self.errors.append(dialog.message), dialog.dismiss()))
        self.tab.on(
            "console",
            lambda line: (
                line.type in ("error", "warning")
                and line.text != "Service Worker registration blocked by Playwright"
                and self.errors.append(line.text)
            ),
        )
        self.tab.goto(address + fragment)

    def _requested(self, request):
        # A service worker repeats the requests of the page.
        if request.service_worker is None:
            self.requests.append(request.url)

    def until_loaded(self):
        self.tab.wait_for_selector("#loading", state="hidden")
        self.until_drawn()
        return self

    def until_drawn(self):
        self.tab.wait_for_selector("#results[aria-busy=false]", state="attached")

    def release(self, held):
        """Continues the held requests until the page has loaded."""
        while not self.tab.locator("#loading").is_hidden():
            while held:
                held.pop().continue_()
            self.tab.wait_for_timeout(50)
        self.until_drawn()

    def until(self, expression):
        """Waits for an expression. Playwright's own function needs eval, which the page forbids."""
        end = time.monotonic() + 30
        while not self.tab.evaluate(expression):
            assert time.monotonic() < end, expression
            self.tab.wait_for_timeout(20)

    def write(self, text):
        self.tab.fill("#text", text)
        self.until_drawn()

    def choose(self, **choices):
        for name, value in choices.items():
            self.tab.check(f"#{name} input[value='{value}']", force=True)
        self.until_drawn()

    def open(self, selector, value=True):
        """Opens or closes details."""
        self.tab.eval_on_selector_all(
            selector,
            "(elements, value) => elements.forEach((element) => (element.open = value))",
            value,
        )
        self.tab.wait_for_timeout(50)

    def trees(self):
        """The trees in brackets."""
        self.open("[data-part=brackets]")
        self.until(
            "[...document.querySelectorAll('[data-part=brackets]')]"
            ".every((details) => details.querySelector('code'))"
        )
        return self.tab.locator("[data-part=brackets] code").all_text_contents()

    def check(self):
        assert self.errors == []
        assert {url for url in self.requests if not url.startswith(self.address)} == set()


@pytest.fixture(scope="module")
def address(folder, scripts):
    with scripts["serve"].serving(folder) as address:
        yield address


@pytest.fixture(scope="module")
def loaded(chromium, address):
    """The page after all models have loaded."""
    context = chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
    yield Page(context, address).until_loaded()
    context.close()


@pytest.fixture
def page(loaded):
    """The same page in its initial state."""
    loaded.tab.set_viewport_size({"width": 1280, "height": 800})
    loaded.tab.emulate_media(color_scheme="light")
    loaded.open("details", False)
    loaded.choose(model="onlstm", tree="votes", layer="all", gate="both")
    loaded.write(SENTENCE)
    yield loaded
    loaded.check()


@pytest.fixture
def tab(chromium, address):
    """Opens the page in a new browser profile."""
    contexts, pages = [], []

    def open_page(fragment="", prepare=lambda context: None, **options):
        contexts.append(chromium.new_context(**options))
        prepare(contexts[-1])
        pages.append(Page(contexts[-1], address, fragment))
        return pages[-1]

    yield open_page
    for context in contexts:
        context.close()


def test_trees_match_package(page):
    count = 0
    for case in CASES["texts"]:
        page.write(case["text"])
        assert page.trees() == case["trees"][0], case["text"]
        count += len(case["trees"][0])
    assert count >= 40


def test_trees_of_other_settings_match_package(page):
    texts = [case for case in CASES["texts"] if 7 <= sum(map(len, case["words"])) <= 30]
    assert len(texts) >= 15
    for reading, number in zip(CASES["readings"], itertools.count()):
        page.choose(tree=reading["method"], layer=reading["layer"] or "all", gate=reading["gate"])
        for case in texts:
            page.write(case["text"])
            assert page.trees() == case["trees"][number], (reading, case["text"])


def test_trees_of_prpn_match_package(page):
    page.choose(model="prpn")
    assert page.tab.locator("#tree :checked").get_attribute("value") == "greedy"
    assert page.tab.locator("#layer").is_hidden() and page.tab.locator("#gate").is_hidden()
    for number, method in enumerate(CASES["methods"]):
        page.choose(tree=method)
        for case in CASES["texts"][:: 1 if method == "greedy" else 4]:
            page.write(case["text"])
            assert page.trees() == case["prpn"][number], (method, case["text"])
    page.write(SENTENCE)
    assert page.tab.locator("svg rect[class^=layer-]").count() == len(SENTENCE.split()) + 1
    page.until("message.textContent.endsWith('built by 1 model.')")
    page.choose(model="onlstm")
    assert page.tab.locator("#tree :checked").get_attribute("value") == "votes"
    assert page.tab.locator("#layer").is_visible()
    assert page.trees() == [brackets(Parser.load().parse(SENTENCE))]


def test_link_to_prpn_loads_it_first(tab):
    held = []
    page = tab(
        f"#text={SENTENCE}&model=prpn",
        lambda context: context.route(re.compile("onlstm-"), lambda route: held.append(route)),
        service_workers="block",
    )
    page.until_drawn()
    (case,) = [case for case in CASES["texts"] if case["text"].startswith("The old man")]
    page.write(case["text"])
    assert page.trees() == case["prpn"][0] and page.tab.locator("#progress").is_visible()
    page.tab.check("#model input[value=onlstm]", force=True)
    assert page.tab.locator("svg").count() == 0  # the trees of the previous model are removed
    page.release(held)
    assert page.trees() == case["trees"][0]
    page.check()


def test_greedy_and_binary_trees_are_compared(page):
    page.choose(tree="both", layer="2", gate="forget")
    (case,) = [case for case in CASES["texts"] if case["text"].startswith("Investors who")]
    page.write(case["text"])
    assert page.trees() == [case["trees"][1][0], case["trees"][2][0]]
    dots = page.tab.locator(".different").count()
    text = page.tab.locator("article > p").inner_text()
    same, phrases = map(int, re.match(r"(\d+) of (\d+) phrases are in both", text).groups())
    assert 0 < same < phrases == len(case["words"][0]) - 1 and dots == 2 * (phrases - same)
    left, right = (box.bounding_box() for box in page.tab.locator("figure").all())
    assert left["y"] == right["y"] and left["x"] + left["width"] < right["x"]


def test_first_model_parses_while_others_are_loading(tab, folder, tmp_path):
    held = []

    def hold(context):
        context.route(re.compile(r"onlstm-[2-9]|prpn"), lambda route: held.append(route))

    page = tab(f"#text={SENTENCE}", hold, service_workers="block")
    page.until_drawn()
    page.until("message.textContent.includes('built by 1 model while the others')")
    (packed,) = folder.glob("models/onlstm-1.*")
    (tmp_path / "first.onnx").write_bytes(gzip.decompress(packed.read_bytes()))
    first = Parser.load(tmp_path / "first.onnx")
    assert page.trees() == [brackets(vote(first.distances(SENTENCE, "both"), SENTENCE.split()))]
    assert page.tab.locator("#progress").is_visible()
    page.release(held)
    page.until("message.textContent.endsWith('built by 5 models.')")
    assert page.trees() == [brackets(Parser.load().parse(SENTENCE))]
    page.check()


def test_texts_that_cannot_be_parsed_give_messages(page):
    for text, message in (
        ("", "Type a sentence."),
        (" ?! ", "The text contains no words."),
        ("a\x07b", "Character 2 is a control character"),
        ("a " * 501, "A sentence has 501 words. The maximum is 500."),
    ):
        page.tab.fill("#text", text)
        page.until(f"message.textContent.startsWith({json.dumps(message)})")
        assert page.tab.locator("svg").count() == 0
    page.write("A cat. " * 22)
    page.until("message.textContent === '20 trees. 2 more sentences not shown.'")
    assert page.tab.locator("svg").count() == 20


def test_markup_is_shown_as_text(page):
    text = "<img src=x onerror=alert(1)> <script>alert('x')</script> a&b"
    for variant in (text, text.replace("<", "\uff1c")):
        page.write(variant)
        assert page.tab.locator("#results img, #results script").count() == 0
        words = page.tab.locator("svg .word").all_text_contents()
        assert "alert" in words and "/script" in "".join(words)


def test_link_restores_sentence_and_options(page, tab):
    page.choose(tree="binary", layer="3", gate="input")
    page.write("It cost $5 & more, he said #1")
    page.tab.click("#link")
    page.tab.wait_for_selector("#link >> text=Copied")
    link = page.tab.evaluate("navigator.clipboard.readText()")
    assert link.startswith(f"{page.address}#text=")
    expected = page.trees()
    other = tab(link.removeprefix(page.address)).until_loaded()
    assert other.tab.input_value("#text") == "It cost $5 & more, he said #1"
    assert other.trees() == expected
    other.tab.evaluate("location.hash = '#text=prices+fell'")
    other.until("document.querySelectorAll('.word').length === 2")
    assert other.tab.locator("#tree :checked").get_attribute("value") == "votes"
    other.check()


def test_example_is_parsed(page):
    texts = page.tab.locator("#examples option").all_text_contents()[1:]
    assert len(texts) >= 8
    page.tab.select_option("#examples", label=texts[1])
    page.until_drawn()
    assert page.tab.input_value("#text") == texts[1]
    assert page.trees() == [brackets(tree) for tree in Parser.load().parse_many([texts[1]])]


def test_copied_svg_has_inline_styles(page):
    page.tab.click("text=Copy SVG")
    page.until("message.textContent === 'Copy SVG: done.'")
    picture = page.tab.evaluate("navigator.clipboard.readText()")
    root = ET.fromstring(picture)
    name = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{name}svg" and "class" not in picture and "style" not in picture
    texts = [element.text for element in root.iter(f"{name}text")]
    assert texts[: len(SENTENCE.split())] == SENTENCE.split()
    fills = {element.get("fill") for element in root.iter(f"{name}rect")}
    assert len(fills) == 4 and all(fill.startswith("rgb(") for fill in fills)


def focused(page):
    return page.tab.evaluate(
        "(document.activeElement.name || document.activeElement.id)"
        " || document.activeElement.textContent"
    )


def test_page_can_be_used_by_keyboard(page):
    page.tab.evaluate("document.activeElement.blur()")
    page.tab.focus("#theme")
    page.tab.keyboard.press("Tab")
    assert focused(page) == "text"
    page.tab.keyboard.press("Control+A")
    page.tab.keyboard.type("the cat saw a dog")
    order = []
    for _ in range(6):
        page.tab.keyboard.press("Tab")
        order.append(focused(page))
    assert order == ["examples", "link", "model", "tree", "layer", "gate"]
    page.tab.keyboard.press("Shift+Tab")
    page.tab.keyboard.press("ArrowRight")
    page.tab.keyboard.press("ArrowRight")  # layer 2
    page.tab.keyboard.press("Shift+Tab")
    page.tab.keyboard.press("ArrowRight")  # greedy
    page.until_drawn()
    for name in ("layer", "gate", "Copy brackets"):
        page.tab.keyboard.press("Tab")
        assert focused(page) == name
    page.tab.keyboard.press("Enter")
    page.tab.wait_for_selector("button >> text=Copied")
    tree = Parser.load(layer=2, method="greedy", gate="both").parse("the cat saw a dog")
    assert page.tab.evaluate("navigator.clipboard.readText()") == brackets(tree)
    for _ in range(2):
        page.tab.keyboard.press("Tab")
    assert focused(page) == "Tree as a list"
    page.tab.keyboard.press("Enter")
    page.tab.wait_for_selector(".outline")


def test_accessible_names_and_structure(page):
    tab = page.tab
    assert tab.get_by_label("Sentence").input_value() == SENTENCE
    for name in ("Examples", "Theme"):
        assert tab.get_by_role("combobox", name=name).count() == 1
    for name, count in (("Model", 2), ("Tree", 4), ("Layer", 4), ("Gate", 3)):
        assert tab.get_by_role("group", name=name, exact=True).get_by_role("radio").count() == count
    image = tab.get_by_role("img", name=f"Tree with the most votes: {SENTENCE}")
    assert image.count() == 1
    assert tab.get_by_role("status").count() == 1
    assert tab.locator("html").get_attribute("lang") == "en"
    assert tab.locator("h1").count() == 1 and tab.locator("main").count() == 1
    page.open("details")
    leaves = tab.locator(".outline li:not(:has(li))").all_text_contents()
    assert leaves == SENTENCE.split()

    def nested(item):
        """Converts a nested list to brackets."""
        parts = item.locator("xpath=./ul/li").all()
        if not parts:
            return item.text_content()
        return f"(X {' '.join(map(nested, parts))})"

    assert nested(tab.locator(".outline > li")) == page.trees()[0]
    rows = tab.get_by_role("row").all_inner_texts()
    assert len(rows) == 1 + len(SENTENCE.split())
    distances = Parser.load().distances(SENTENCE)  # forget gates
    for word, row in enumerate(rows[1:]):
        numbers = list(map(float, row.split()[1:4]))
        expected = [distances[layer::3, word].mean() for layer in range(3)]
        assert numbers == pytest.approx(expected, abs=6e-4)


def test_long_sentences_scroll_with_keyboard(page):
    page.write(" ".join(["the cat"] * 150))
    box = page.tab.locator(".picture")
    assert box.get_attribute("tabindex") == "0"
    box.focus()
    page.tab.keyboard.press("ArrowRight")
    page.until("document.querySelector('.picture').scrollLeft > 0")
    assert page.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


OVERLAPS = """() => {
  const problems = [];
  const shown = [...document.querySelectorAll(
    "h1, header p, header label, textarea, select, button, legend, .choices, #message, h2,"
    + " .picture, summary, footer p")].filter((one) => one.getClientRects().length);
  const boxes = shown.map((one) => one.getBoundingClientRect());
  shown.forEach((one, i) => {
    if (boxes[i].left < 0 || boxes[i].right > innerWidth) problems.push(["beyond", one.outerHTML]);
    shown.slice(i + 1).forEach((other, k) => {
      if (one.contains(other) || other.contains(one)) return;
      const [a, b] = [boxes[i], boxes[i + 1 + k]];
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 0.5 && high > 0.5) problems.push(["overlap", one.outerHTML, other.outerHTML]);
    });
    const cut = one.scrollWidth > one.clientWidth + 1 && !one.matches(".picture, summary, select");
    if (cut && one.clientWidth) problems.push(["cut", one.outerHTML]);
  });
  for (const picture of document.querySelectorAll("svg")) {
    const words = [...picture.querySelectorAll(".word")].map((one) => one.getBBox());
    words.slice(1).forEach((box, i) => {
      if (box.x < words[i].x + words[i].width) problems.push(["words", i]);
    });
    const [box, view] = [picture.getBBox(), picture.viewBox.baseVal];
    const [right, bottom] = [box.x + box.width, box.y + box.height];
    if (box.x < 0 || box.y < 0 || right > view.width || bottom > view.height)
      problems.push(["picture", box.x, box.y, box.width, box.height]);
  }
  return problems;
}"""


@pytest.mark.parametrize("width", [320, 400, 900, 1400])
def test_nothing_overlaps_or_is_cut(page, width):
    page.tab.set_viewport_size({"width": width, "height": 900})
    for tree, text in (("votes", SENTENCE), ("both", "Investors who bought shares lost money."),
                       ("votes", "dog"), ("binary", "incomprehensibilities " * 12)):  # fmt: skip
        page.choose(tree=tree)
        page.write(text)
        page.tab.wait_for_timeout(300)  # the message appears with a delay
        assert page.tab.evaluate(OVERLAPS) == []
        assert page.tab.evaluate("document.documentElement.scrollWidth") <= width


def test_theme_is_chosen_and_stored(page):
    def background():
        return page.tab.evaluate("getComputedStyle(document.body).backgroundColor")

    light = background()
    page.tab.emulate_media(color_scheme="dark")
    dark = background()
    assert light == "rgb(251, 251, 250)" and dark == "rgb(20, 24, 28)"
    page.tab.select_option("#theme", "light")
    assert background() == light
    page.tab.emulate_media(color_scheme="light")
    page.tab.select_option("#theme", "dark")
    assert background() == dark
    page.tab.reload()
    page.until_loaded()
    assert background() == dark and page.tab.input_value("#theme") == "dark"
    page.tab.select_option("#theme", "")
    assert background() == light


def test_page_works_offline_after_first_load(chromium, folder, scripts):
    context = chromium.new_context()
    with scripts["serve"].serving(folder) as address:
        page = Page(context, address).until_loaded()
        page.tab.wait_for_selector("#offline", state="visible")
        large = [url for url in page.requests if url.endswith(".gz")]
        assert len(large) == len(set(large)) == 7
    context.set_offline(True)  # the server has stopped, too
    page.requests.clear()
    page.tab.reload()
    page.until_loaded()
    assert [url for url in page.requests if url.endswith(".gz")] == []
    page.write(SENTENCE)
    assert page.trees() == [brackets(Parser.load().parse(SENTENCE))]
    page.check()
    context.close()


def test_failed_downloads_are_reported_and_retried(tab):
    broken = re.compile(r"onlstm-3")

    def cut(context):
        context.route(broken, lambda route: route.fulfill(status=503, body="later"))

    page = tab(f"#text={SENTENCE}", cut, service_workers="block")
    page.tab.wait_for_selector("#failed", state="visible")
    text = page.tab.locator("#failed").inner_text()
    assert "onlstm-3" in text and "the server responded with status 503" in text
    assert page.tab.locator("svg").count() == 1  # the loaded models parse
    page.tab.context.unroute(broken)
    page.tab.context.route(broken, lambda route: route.fulfill(status=200, body="half a model"))
    page.tab.click("#retry")
    page.until("failed.textContent.includes('bytes, got 12')")
    page.tab.context.unroute(broken)
    page.tab.click("#retry")
    page.until_loaded()
    assert page.tab.locator("#failed").is_hidden()
    assert page.trees() == [brackets(Parser.load().parse(SENTENCE))]


def test_decompressed_downloads_are_accepted(tab, folder):
    """Some servers decompress .gz files."""

    def unpack(route):
        name = route.request.url.rsplit("/", 1)[1]
        (packed,) = folder.glob(f"*/{name}")
        route.fulfill(status=200, body=gzip.decompress(packed.read_bytes()))

    page = tab(
        f"#text={SENTENCE}",
        lambda context: context.route(re.compile("onlstm-[12]"), unpack),
        service_workers="block",
    )
    page.until_loaded()
    assert page.trees() == [brackets(Parser.load().parse(SENTENCE))]
    page.check()


def test_page_within_documentation_links_to_it(chromium, page, folder, scripts, tmp_path):
    """The service worker of the page does not control the documentation."""
    assert page.tab.locator("#documentation").is_hidden()
    shutil.copytree(folder, tmp_path / "parser")
    files = tmp_path / "parser" / "files.js"
    text = files.read_text(encoding="utf-8")
    assert text.count('"documentation": null') == 1
    files.write_text(text.replace('"documentation": null', '"documentation": "../index.html"'))
    (tmp_path / "index.html").write_text("<title>Documentation</title><h1>here</h1>")
    context = chromium.new_context()
    with scripts["serve"].serving(tmp_path) as address:
        nested_page = Page(context, f"{address}parser/").until_loaded()
        nested_page.tab.wait_for_selector("#offline", state="visible")
        controlled = "navigator.serviceWorker.controller !== null"
        nested_page.until(controlled)
        nested_page.tab.click("text=Documentation")
        nested_page.tab.wait_for_selector("text=here")
        assert nested_page.tab.evaluate(controlled) is False
    context.close()


def test_sizes_of_files(folder):
    sizes = {path.name: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    models = [size for name, size in sizes.items() if name.startswith(("onlstm-", "prpn-"))]
    assert len(models) == 6 and sum(models) < 16e6
    wasm = [size for name, size in sizes.items() if "wasm" in name]
    assert len(wasm) == 1 and wasm[0] < 15e6
    rest = sum(size for name, size in sizes.items() if not name.endswith(".gz"))
    assert rest < 200e3
