"""Documents with protected parts, and short names for edits, for the tests of edits."""

import pytest

from burnish.domain.edits import Edit, EditOp

EMPTY_CONTENT = "empty content; use delete to remove text"
TARGET_REQUIRED = "target required for this edit op"
TARGET_NOT_FOUND = "target not found in current skill document"
TARGET_PROTECTED = "target inside a protected region"
PROTECTION_CHANGED = "edit would change a protected region or its markers"

SLOW, SLOW_END = "<!-- SLOW_UPDATE_START -->", "<!-- SLOW_UPDATE_END -->"
APPENDIX, APPENDIX_END = "<!-- APPENDIX_START -->", "<!-- APPENDIX_END -->"
LOCKED, LOCKED_END = "<!-- LOCKED_START -->", "<!-- LOCKED_END -->"
SLOW_BLOCK = f"{SLOW}\nslow\n{SLOW_END}"
APPENDIX_BLOCK = f"{APPENDIX}\nmore\n{APPENDIX_END}"
LOCKED_BLOCK = f"{LOCKED}\nlaw\n{LOCKED_END}"
FRONT_MATTER = "---\nname: demo\nallowed-tools: none\n---"
REGIONS = [pytest.param(SLOW, SLOW_END, id="slow-update"), pytest.param(APPENDIX, APPENDIX_END, id="appendix")]
ALL_REGIONS = [*REGIONS, pytest.param(LOCKED, LOCKED_END, id="locked")]


def append(content: str) -> Edit:
    return Edit(EditOp.APPEND, content)


def insert_after(target: str, content: str) -> Edit:
    return Edit(EditOp.INSERT_AFTER, content, target)


def replace(target: str, content: str) -> Edit:
    return Edit(EditOp.REPLACE, content, target)


def delete(target: str) -> Edit:
    return Edit(EditOp.DELETE, target=target)
