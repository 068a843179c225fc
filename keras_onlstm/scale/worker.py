"""What every process does that works on a corpus, wherever it runs: shard in, file out."""

from typing import NamedTuple

from keras_onlstm.scale.shards import Shard, read, write
from keras_onlstm.scale.tasks import Task
from keras_onlstm.utils.types import StrPath

__all__ = ["Counts", "Worker"]


class Counts(NamedTuple):
    """What came of rows.

    Attributes:
        rows: integer.
        words: integer, those that were read.
        errors: integer, rows that could not be read.
    """

    rows: int
    words: int
    errors: int


class Worker:
    """A task with its model loaded.

    Args:
        task: of `tasks`.

    Raises:
        FileNotFoundError: as the task's `begin`, and what else it raises.
    """

    def __init__(self, task: Task) -> None:
        self._task, self._records = task, task.begin()

    def __call__(self, shard: Shard, path: StrPath) -> Counts:
        """Writes what comes of a shard, all or nothing.

        Args:
            shard: `shards.Shard`.
            path: of the file.

        Returns:
            `Counts`.

        Raises:
            OSError: if the file cannot be written.
            ValueError: if what the shard is of is damaged.
        """
        counts = [0, 0, 0]

        def rows():
            texts = read(shard, self._task.column)
            for number, found in enumerate(self._records(texts), shard.row):
                for place, more in enumerate((1, found.words, bool(found.fields["error"]))):
                    counts[place] += more
                yield {"row": number, **found.fields}

        write(path, rows(), self._task)
        return Counts(*counts)
