"""Reading pictures: the elements and the size of an SVG, the size of a PNG."""

from xml.etree import ElementTree

# Words with special characters, and their escaped forms.
HOSTILE = ["$\\frac$", "<b>&amp;", "]]>", '"', "a\tb", "\x85", "\x00", "bell\x07", "\x1b[31m"]
HOSTILE += ["\uffff", "\ud800", "\u202eb"]
SHOWN = ["$\\frac$", "<b>&amp;", "]]>", '"', "a b", " ", "\ufffd", "bell\ufffd", "\ufffd[31m"]
SHOWN += ["\ufffd", "\ufffd", "\ufffdb"]


def elements(svg, name):
    return list(ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}" + name))


def texts(svg):
    return [element.text or "" for element in elements(svg, "text")]


def numbers(element, *names):
    return [float(element.get(name)) for name in names]


def size(svg):
    return numbers(ElementTree.fromstring(svg), "width", "height")


def png_size(path):
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    return [int.from_bytes(data[start : start + 4], "big") for start in (16, 20)]
