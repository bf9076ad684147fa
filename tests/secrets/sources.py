"""Where planted secrets come from beside alerts, people and the model: a kubelet's logs, and a Prometheus."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web

from praxis.controlplane import ControlPlane
from tests.evidence.kubelet import Kubelet, running_kubelet
from tests.secrets.corpus import Planted
from tests.secrets.model import LeakingModel

NODE = "planted-node"
Answer = TypeVar("Answer")


class Loop:
    """An event loop in a thread of its own: what runs on it answers while a test waits."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Run it there, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def close(self) -> None:
        """End what still runs there, let its connections close, and end the thread."""
        self.run(_ended())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _ended() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    # A transport that was closed or aborted says so to its protocol in the loop's next round.
    await asyncio.sleep(0)
    await asyncio.sleep(0)


class Prometheus:
    """Answers every second query with an error that quotes secrets, the others with series whose labels hold them."""

    def __init__(self, planted: Sequence[Planted]) -> None:
        self.asked: list[str] = []
        self.port = 0
        self._planted = cycle(planted)

    async def answer(self, request: web.Request) -> web.Response:
        """GET /api/v1/query and query_range."""
        self.asked.append(request.path_qs)
        if len(self.asked) % 2:
            error = "; ".join(next(self._planted).text for _ in range(4))
            return web.json_response({"status": "error", "errorType": "execution", "error": error}, status=422)
        metric = {f"l{number}": next(self._planted).text for number in range(12)}
        point = {"value": [1769860000, "1"]} if request.path.endswith("query") else {"values": [[1769860000, "1"]]}
        kind = "vector" if request.path.endswith("query") else "matrix"
        data = {"resultType": kind, "result": [{"metric": metric, **point}]}
        return web.json_response({"status": "success", "data": data})


@contextmanager
def running(
    plane: ControlPlane, directory: Path, *, measured: Sequence[Planted]
) -> Iterator[tuple[LeakingModel, Kubelet, Prometheus]]:
    """The model, a node with a kubelet, and a Prometheus, all on loopback."""
    loop, stack = Loop(), AsyncExitStack()
    model, prometheus = LeakingModel(), Prometheus(measured)
    try:
        loop.run(stack.enter_async_context(model))
        kubelet = loop.run(stack.enter_async_context(running_kubelet(directory)))
        loop.run(_serve(prometheus, stack))
        _declare_node(plane, kubelet.port)
        yield model, kubelet, prometheus
    finally:
        loop.run(stack.aclose())
        loop.close()


async def _serve(prometheus: Prometheus, stack: AsyncExitStack) -> None:
    application = web.Application()
    application.router.add_get("/{path:.*}", prometheus.answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    prometheus.port = int(runner.addresses[0][1])


def _declare_node(plane: ControlPlane, port: int) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
    created = plane.request("POST", "/api/v1/nodes", node)
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    plane.request("PUT", f"/api/v1/nodes/{NODE}/status", {**created, "status": status})


def pod(name: str, *, environment: Sequence[Planted]) -> dict[str, Any]:
    """A pod in trouble on that node, with secrets in its environment."""
    env = [{"name": f"SETTING_{number}", "value": each.text} for number, each in enumerate(environment)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"planted/settings": json.dumps(env)}},
        "spec": {
            "nodeName": NODE,
            "containers": [{"name": name, "image": "shop/app:1", "env": env}],
        },
    }
