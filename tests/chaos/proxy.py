"""A TCP proxy that slows down, freezes and cuts what it forwards."""
import asyncio
import socket
import threading

CHUNK = 1024
SOCKET_BYTES = 4096  # so that little is on its way
WAYS = ("up", "down")  # from the client to the daemon, and back


def with_small_buffers(made):
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        made.setsockopt(socket.SOL_SOCKET, option, SOCKET_BYTES)
    return made


class Proxy:
    """Listens on 127.0.0.1:`port`, and forwards each connection to the daemon's port.

    Threads: any; the work is done in one of its own.
    """

    def __init__(self, target):
        self._target = target
        self._frozen = frozenset()  # ways
        self._rate = None  # bytes a second and way; None: no bound
        self._writers = set()
        self._loop = asyncio.new_event_loop()
        listener = with_small_buffers(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        self.port = listener.getsockname()[1]
        self._server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, sock=listener, limit=CHUNK))
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    # ---- what befalls it; each holds until it is said otherwise ------------------------------

    def freeze(self, ways):
        self._frozen = frozenset(ways)

    def slow_down(self, rate):
        self._rate = rate

    def cut(self):
        """All connections; what is on its way is lost."""
        self._loop.call_soon_threadsafe(self._cut)

    def close(self):
        """Ends it, with its thread."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # ---- in its thread -----------------------------------------------------------------------

    def _cut(self):
        for writer in self._writers:
            writer.transport.abort()

    async def _end(self):
        self._server.close()
        self._cut()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader, writer):
        self._writers.add(writer)
        try:
            made = with_small_buffers(socket.socket())
            made.setblocking(False)
            await self._loop.sock_connect(made, ("127.0.0.1", self._target))
            answers, daemon = await asyncio.open_connection(sock=made, limit=CHUNK)
        except OSError:  # there is no daemon just now
            made.close()
            writer.transport.abort()
            self._writers.discard(writer)
            return
        self._writers.add(daemon)
        try:
            await asyncio.gather(self._forward(reader, daemon, "up"),
                                 self._forward(answers, writer, "down"))
        finally:
            for each in (writer, daemon):
                each.transport.abort()
                self._writers.discard(each)

    async def _forward(self, reader, writer, way):
        """Until an end is seen, which goes the same way as the bytes."""
        writer.transport.set_write_buffer_limits(0)
        try:
            while data := await reader.read(CHUNK):
                await self._pass(way)
                writer.write(data)
                await writer.drain()
                if self._rate is not None:
                    await asyncio.sleep(len(data) / self._rate)
        except OSError:
            pass
        await self._pass(way)
        writer.close()

    async def _pass(self, way):
        while way in self._frozen:
            await asyncio.sleep(0.005)
