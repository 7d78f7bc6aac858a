"""The pages say what the code says, their links lead somewhere, and the one-file guide is made of them."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import api_reference
import guideline
from burnish import api

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")


class Seen(HTMLParser):
    """What a browser would find in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name == "href" and tag == "a":
                self.links.append(value or "")
            elif name in {"src", "href", "srcset"}:
                self.fetched.append(value or "")


@pytest.fixture(scope="module")
def seen() -> Seen:
    found = Seen()
    found.feed(guideline.GUIDELINE.read_text(encoding="utf-8"))
    return found


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    return {
        guideline.slug_of(line.lstrip("# "))
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("#")
    }


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target in LINK.findall(without_code(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        linked = (page.parent / file).resolve() if file else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


def test_the_api_reference_is_what_the_code_says() -> None:
    assert api_reference.main(["--check"]) == 0


def test_the_api_reference_has_every_public_name() -> None:
    told = re.findall(r"^### (\w+)$", api_reference.PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(told) == sorted(api.__all__)


def test_the_guide_is_what_the_pages_say() -> None:
    assert guideline.main(["--check"]) == 0


def test_the_guide_needs_nothing_but_itself(seen: Seen) -> None:
    assert seen.fetched == []
    assert "@import" not in guideline.GUIDELINE.read_text(encoding="utf-8")


def test_links_in_the_guide_lead_to_what_is_there(seen: Seen) -> None:
    assert len(set(seen.ids)) == len(seen.ids)
    for link in seen.links:
        if link.startswith("#"):
            assert link[1:] in seen.ids, link
        elif not re.match(r"[a-z]+:", link):
            assert (guideline.DOCS / link.partition("#")[0]).exists(), link


def test_every_page_is_in_the_navigation(seen: Seen) -> None:
    assert {f"#{path.stem}" for path in (ROOT / "docs").glob("*.md")} <= set(seen.links)


def test_a_check_of_another_text_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module, name in ((guideline, "GUIDELINE"), (api_reference, "PAGE")):
        other = tmp_path / name
        other.write_text("something else", encoding="utf-8")
        monkeypatch.setattr(module, name, other)
        assert module.main(["--check"]) == 1
        assert module.main([]) == 0
        assert module.main(["--check"]) == 0
