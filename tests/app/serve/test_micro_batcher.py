import asyncio
import threading

import pytest

from psilearn.app.serve.micro_batcher import MicroBatcher, QueueFullError


def test_waiting_requests_with_the_same_key_form_blocks():
    blocks = []
    started, may_finish = threading.Event(), threading.Event()

    def compute(values):
        started.set()
        may_finish.wait(5)
        blocks.append(list(values))
        if "bad" in values:
            raise ValueError("bad")
        return [value * 2 for value in values]

    async def run():
        batcher = MicroBatcher(block_rows=3, queue_rows=8)
        first = asyncio.create_task(batcher.submit("a", compute, [1]))
        while not started.is_set():
            await asyncio.sleep(0.001)
        rest = [("a", [2]), ("b", [3]), ("a", [4, 5]), ("a", [6]), ("a", ["bad"])]
        others = [asyncio.create_task(batcher.submit(key, compute, values)) for key, values in rest]
        gone = asyncio.create_task(batcher.submit("a", compute, [7]))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError):
            await batcher.submit("a", compute, [8] * 3)
        may_finish.set()
        results = await asyncio.gather(first, *others, return_exceptions=True)
        batcher.close()
        assert batcher.n_waiting == 0
        return results

    results = asyncio.run(run())
    assert results[:5] == [[2], [4], [6], [8, 10], [12]] and isinstance(results[5], ValueError)
    assert blocks == [[1], [2, 4, 5], [3], [6, "bad"], [6], ["bad"]]
