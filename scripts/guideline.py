"""Build `docs/guideline.html`: all pages of the documentation in one file that needs nothing else.

`python scripts/guideline.py` writes it, `--check` ends with status 1 when it is not what the pages say.
"""

from __future__ import annotations

import html
import itertools
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GUIDELINE = DOCS / "guideline.html"

CHAPTERS = {
    "Begin": ("README", "tutorial"),
    "The method": ("training", "prompts", "ablations", "real-model"),
    "Use it": ("console", "data", "scorers", "models", "budgets", "estimates", "recordings", "durability"),
    "Build on it": ("embedding", "evolver", "extending"),
    "Reference": ("configuration", "skillopt-flags", "failures", "api"),
    "Background": ("decisions", "measured"),
}
"""The pages, in the order in which people read them; a page that does not exist is left out."""

_FROM_OUTSIDE = re.compile(r"[a-z]+:|//")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a page: 2 or 3 deep."""

    anchor: str
    title: str
    depth: int


@dataclass(frozen=True, slots=True)
class Page:
    """A page as HTML, with its title and the headings under it."""

    name: str
    title: str
    body: str
    headings: tuple[Heading, ...]


def pages() -> dict[str, tuple[Page, ...]]:
    """Chapters with their pages. Raises SystemExit for a page of the folder that is in no chapter."""
    listed = {name for names in CHAPTERS.values() for name in names}
    if forgotten := {path.stem for path in DOCS.glob("*.md")} - listed:
        raise SystemExit(f"scripts/guideline.py: in no chapter: {', '.join(sorted(forgotten))}: add them to CHAPTERS")
    found = {
        title: tuple(read_page(path) for name in names if (path := path_of(name)).exists())
        for title, names in CHAPTERS.items()
    }
    return {title: chapter for title, chapter in found.items() if chapter}


def path_of(name: str) -> Path:
    """Where a page's source is."""
    return ROOT / "README.md" if name == "README" else DOCS / f"{name}.md"


def read_page(path: Path) -> Page:
    """A page, its links made to lead to the other pages' places in the one file."""
    name = path.stem
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(_without_comments(path.read_text(encoding="utf-8")))
    headings = tuple(_headings(tokens, name))
    for token in tokens:
        for child in token.children or ():
            if child.type == "link_open":
                child.attrs["href"] = _link(str(child.attrs["href"]), path)
    title = headings[0].title if headings else name
    return Page(name, title, markdown.renderer.render(tokens, markdown.options, {}), headings[1:])


def _without_comments(text: str) -> str:
    """The text without the comments that tests find examples by; those inside of code stay."""
    lines: list[str] = []
    is_code = False
    for line in text.splitlines():
        is_code ^= line.startswith("```")
        if is_code or not re.fullmatch(r"<!--.*-->", line.strip()):
            lines.append(line)
    return "\n".join(lines)


def _headings(tokens: Sequence[Token], page: str) -> Iterator[Heading]:
    """The headings, the page's title first; each gets its anchor."""
    seen: dict[str, int] = {}
    for opening, inline in itertools.pairwise(tokens):
        if opening.type != "heading_open":
            continue
        title = "".join(child.content for child in inline.children or ())
        slug = slug_of(title)
        seen[slug] = seen.get(slug, -1) + 1
        anchor = f"{page}--{slug}-{seen[slug]}" if seen[slug] else f"{page}--{slug}"
        opening.attrs["id"] = anchor
        depth = int(opening.tag[1])
        if depth <= 3:
            yield Heading(anchor, title, depth)


def slug_of(title: str) -> str:
    """A heading's anchor, as common Markdown hosts make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _link(target: str, path: Path) -> str:
    """Where a link leads from within the one file, which lies in the folder of the pages."""
    if _FROM_OUTSIDE.match(target):
        return target
    file, _, anchor = target.partition("#")
    linked = path if not file else (path.parent / file).resolve()
    if linked.suffix == ".md" and linked in {DOCS / linked.name, ROOT / "README.md"}:
        return f"#{linked.stem}--{anchor}" if anchor else f"#{linked.stem}"
    return f"../{linked.relative_to(ROOT)}" + (f"#{anchor}" if anchor else "")


def build() -> str:
    """The whole file."""
    chapters = pages()
    navigation = "\n".join(
        f"<h2>{html.escape(title)}</h2>\n<ul>\n"
        + "\n".join(f'<li><a href="#{page.name}">{html.escape(page.title)}</a></li>' for page in chapter)
        + "\n</ul>"
        for title, chapter in chapters.items()
    )
    articles = "\n".join(_article(page) for chapter in chapters.values() for page in chapter)
    template = (Path(__file__).parent / "guideline.html.in").read_text(encoding="utf-8")
    return template.replace("@navigation@", navigation).replace("@articles@", articles)


def _article(page: Page) -> str:
    """A page's content with its own list of headings beside it."""
    listed = "\n".join(
        f'<li class="depth-{heading.depth}"><a href="#{heading.anchor}">{html.escape(heading.title)}</a></li>'
        for heading in page.headings
    )
    aside = (
        f'<aside aria-label="On this page">\n<h2>On this page</h2>\n<ul>\n{listed}\n</ul>\n</aside>\n' if listed else ""
    )
    return f'<section class="page" id="{page.name}">\n<article>\n{page.body}</article>\n{aside}</section>'


def main(arguments: Sequence[str]) -> int:
    """Write the file, or look whether it is right; returns the exit status."""
    built = build()
    if "--check" in arguments:
        is_right = GUIDELINE.exists() and GUIDELINE.read_text(encoding="utf-8") == built
        if not is_right:
            print("docs/guideline.html is not what the pages say: run make docs", file=sys.stderr)
        return int(not is_right)
    GUIDELINE.write_text(built, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
