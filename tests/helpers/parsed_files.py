"""Results of files that are parsed in shards."""

import json

ODD = b"\xef\xbb\xbfPrices fell. It rained.\r\n\n...\nx\xff\na\x00b\nthe cat sat on the mat\nlast"


SENTENCES = ["the cat saw a dog", "prices fell", "a dog sat", "it rained, and it snowed."] * 6


def content(directory):
    paths = sorted(path for path in directory.iterdir() if path.name[0] in "0123456789")
    return "".join(path.read_text() for path in paths)


def records_of(directory):
    if any(directory.glob("*.jsonl")):
        return list(map(json.loads, content(directory).splitlines()))
    import pyarrow.parquet

    paths = sorted(directory.glob("*.parquet"))
    return [row for path in paths for row in pyarrow.parquet.read_table(path).to_pylist()]
