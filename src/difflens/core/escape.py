r"""Strings from a file, made harmless for the place where they are shown.

A tensor name may hold anything: terminal commands, a formula for a spreadsheet, or text that reads
right to left. Each output has its own escape. Jinja escapes HTML, and the libraries of JSON and
YAML escape theirs.
"""

LONGEST_NAME = 200

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def _code(character: str) -> str:
    point = ord(character)
    if 0xDC80 <= point <= 0xDCFF:  # what os.fsdecode writes for a byte that is not UTF-8
        return f"\\x{point - 0xDC00:02x}"
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def visible(text: str) -> str:
    r"""Replace every invisible or control character by its code, so that the text is one line.

    >>> visible("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    # Printable characters exclude controls (also invisible and bidirectional ones), separators
    # other than the space, and lone surrogates.
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _code(each) for each in text)


def for_terminal(text: str, longest: int = LONGEST_NAME) -> str:
    """Make a name safe to print; cut a very long one and add a count.

    >>> for_terminal("x" * 300, 10)
    'xxxxxxxxxx…(+290 characters)'
    """
    if len(text) > longest:
        return f"{visible(text[:longest])}…(+{len(text) - longest} characters)"
    return visible(text)


def for_csv(text: str) -> str:
    """Prevent a spreadsheet from reading a name as a formula.

    >>> for_csv("=1+1")
    "'=1+1"
    """
    return f"'{text}" if text.startswith(_FORMULA) else text
