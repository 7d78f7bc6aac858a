r"""Making a model's texts literal: real line breaks in place of written ones, and those of the skill they are meant for."""

from __future__ import annotations

import re

from burnish.domain.regions import protection, without_markers

_QUOTED = re.compile(r'(?<!`)`[^`]{1,40}`(?!`)|"[^"]{0,40}"')
_WRITTEN_BREAK = re.compile(_QUOTED.pattern + r"|(?<![\\:])(?:\\r)?\\n")
_CLEAR_BREAK = re.compile(
    r"(?<!\\)\\n(?=[ \t]*(?:[-*+>] |#{1,6} |\d{1,3}[.)] |\||```)|(?:\\r)?\\n)"  # before a line of Markdown or a blank one
    r"|(?:(?<=[.!?])|\A)(?:\\r)?\\n(?=[A-Z]|\s*\Z)"  # between two sentences, or after the last
)
_WRAPPED = re.compile(
    r"\A\s*(?:(?P<fence>`{3,})[ \t]*(?:markdown|md)?[ \t]*\r?\n(?P<fenced>.*?)\r?\n(?P=fence)"
    r"|<skill>[ \t]*\r?\n(?P<tagged>.*?)\r?\n</skill>)\s*\Z",
    re.DOTALL,
)


class TargetDocument:
    """What must be known of the skill to write texts that fit it; without a skill (None), what is usual."""

    def __init__(self, skill: str | None) -> None:
        self._text = skill
        breaks, wide_breaks = (0, 0) if skill is None else (skill.count("\n"), skill.count("\r\n"))
        self.line_break = "\r\n" if wide_breaks else "\n"
        self.has_mixed_breaks = 0 < wide_breaks < breaks
        self._spans = () if skill is None else protection(skill).spans

    def ends_a_line(self, target: str) -> bool:
        """Whether an insertion behind `target` starts at the end of a line; true where nobody knows yet."""
        if self._text is None:
            return True
        at = self._text.find(target)
        while at >= 0:
            end = at + len(target)
            blocking = next((span for span in self._spans if at < span.end and span.start < end), None)
            if blocking is None:
                return end == len(self._text) or self._text.startswith(("\n", "\r\n"), end)
            at = self._text.find(target, blocking.end)
        return True

    def with_line_breaks(self, text: str) -> str:
        r"""`\n` written out becomes a line break where it is clearly meant; line breaks become those of the skill."""
        if "\n" not in text and _CLEAR_BREAK.search(_QUOTED.sub('"', text)):
            text = _WRITTEN_BREAK.sub(lambda found: found.group() if found.group()[0] in '`"' else "\n", text)
        return text if self.has_mixed_breaks else text.replace("\r\n", "\n").replace("\n", self.line_break)


def whole_skill(text: str, skill: str) -> str:
    """A skill that a model wrote to take the place of `skill`; empty when nothing but protected parts is in it.

    A code fence or tags around it are taken off, it ends in one line break. Where its protected parts are not exactly
    those of `skill`, all of them are left out: whoever applies it puts the right ones back.
    """
    document = TargetDocument(skill)
    text = document.with_line_breaks(text)
    wrapped = _WRAPPED.match(text)
    if wrapped is not None:
        text = wrapped["fenced"] if wrapped["tagged"] is None else wrapped["tagged"]
    found = protection(text)
    if not found.same_as(protection(skill)):
        ends = [0, *(span.end for span in found.spans)]
        starts = [*(span.start for span in found.spans), len(text)]
        text = without_markers("".join(text[end:start] for end, start in zip(ends, starts, strict=True)))
        text = text.lstrip("\r\n")
    elif not _free_text(text).strip():
        return ""
    return text.rstrip() + document.line_break if text.strip() else ""


def _free_text(text: str) -> str:
    """What of a document is not protected."""
    for span in reversed(protection(text).spans):
        text = text[: span.start] + text[span.end :]
    return text
