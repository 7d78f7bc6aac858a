"""Reading items from Parquet, with pyarrow where it is installed (the extra `parquet`)."""

from __future__ import annotations

import importlib
import io
import json
from typing import Any, Final

from burnish.infrastructure.tasks.items import Collected
from burnish.infrastructure.tasks.json_values import json_value
from burnish.infrastructure.tasks.refusals import RefusalError, at
from burnish.infrastructure.tasks.strict_json import MAX_ITEM_BYTES

MAX_UNPACKED_BYTES: Final = 1024 * 1024 * 1024
"""Of a whole file: packed, it may be a thousand times smaller."""

_ROWS_AT_ONCE: Final = 1_000


def add_parquet_rows(data: bytes, collected: Collected) -> None:
    """Add an item for each row. Columns of bytes (images, audio) are left out. Raises RefusalError."""
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise RefusalError(
            "reading Parquet needs pyarrow, which is not installed: pip install burnish[parquet]"
        ) from None
    try:
        file = parquet.ParquetFile(io.BytesIO(data))
        metadata = file.metadata
        sizes = [metadata.row_group(index).total_byte_size for index in range(metadata.num_row_groups)]
        if sum(sizes) > MAX_UNPACKED_BYTES:
            raise RefusalError("larger than 1 GiB when unpacked; split it into several files")
        columns = [field.name for field in file.schema_arrow if not _holds_bytes(field.type)]
        number = 0
        for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=columns):
            for row in batch.to_pylist():
                number += 1
                _add(row, f"row {number}", collected)
    except (arrow.lib.ArrowException, OSError, ValueError, OverflowError) as error:
        kind = type(error).__name__
        raise RefusalError(f"not readable as Parquet ({kind}); write it anew, or convert it to .jsonl") from None


def _add(row: object, place: str, collected: Collected) -> None:
    with at(place):
        record = json_value(row)
        if len(json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass")) > MAX_ITEM_BYTES:
            raise RefusalError("longer than 1 MiB; shorten the item")
        collected.add(record, place)


def _holds_bytes(kind: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    if kind.num_fields:
        return any(_holds_bytes(kind.field(index).type) for index in range(kind.num_fields))
    return "binary" in str(kind)
