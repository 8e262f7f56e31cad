"""Short answers of a server, read as a whole: what an interface for programs says."""

from __future__ import annotations

from http.client import HTTPMessage, HTTPResponse

from .asking import PassingFailure, Question
from .links import Link, Route


class Text(Question):
    """An answer of at most so many bytes."""

    def __init__(self, where: str, most: int) -> None:
        """Say whom errors name, and how long an answer may be."""
        super().__init__(where)
        self.most = most
        self.content = b""
        self.answer_headers = HTTPMessage()

    def headers(self) -> dict[str, str]:
        """Ask for JSON."""
        return {"Accept": "application/json"}

    def read(self, response: HTTPResponse) -> None:
        """Read all of it, or refuse."""
        expected = response.length
        self.content = response.read(self.most + 1)
        if len(self.content) > self.most:
            self.refuse(f"the server's answer has more than {self.most} bytes")
        if expected is not None and len(self.content) != expected:
            raise PassingFailure("the server's answers break off")
        self.answer_headers = response.headers
        self.is_answered = True


def fetch_text(where: str, link: Link, most: int) -> Text:
    """Ask a server for a short answer."""
    text = Text(where, most)
    text.ask(Route(lambda: link))
    return text
