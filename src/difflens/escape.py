r"""Strings out of a file, made harmless for the place they go to.

A tensor name is whatever its writer liked: it may hold terminal commands, a
formula for a spreadsheet, or text that reads right to left. Each channel has
its own escape. HTML is Jinja's (autoescape), JSON and YAML their libraries'.
"""

LONGEST_NAME = 200

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def _code(character: str) -> str:
    point = ord(character)
    if 0xDC80 <= point <= 0xDCFF:  # os.fsdecode's mark for a byte that is no UTF-8
        return f"\\x{point - 0xDC00:02x}"
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def visible(text: str) -> str:
    r"""Write every invisible or commanding character as its code, on one line.

    >>> visible("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    # What Python calls printable leaves out all controls, also the invisible and bidirectional
    # ones, separators other than the space, and lone surrogates.
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _code(each) for each in text)


def for_terminal(text: str, longest: int = LONGEST_NAME) -> str:
    """Make a name safe to print, and cut it with a count where it is very long.

    >>> for_terminal("x" * 300, 10)
    'xxxxxxxxxx…(+290 characters)'
    """
    if len(text) > longest:
        return f"{visible(text[:longest])}…(+{len(text) - longest} characters)"
    return visible(text)


def for_csv(text: str) -> str:
    """Keep a spreadsheet from reading a name as a formula.

    >>> for_csv("=1+1")
    "'=1+1"
    """
    return f"'{text}" if text.startswith(_FORMULA) else text
