"""Forwards the traffic between a PostgreSQL server and its clients with a delay in milliseconds."""

import asyncio
import sys

socket, target, delay = sys.argv[1], sys.argv[2], float(sys.argv[3]) / 1000


async def pass_on(reader, writer):
    loop = asyncio.get_running_loop()
    words = asyncio.Queue()

    async def speak():
        while True:
            due, word = await words.get()
            await asyncio.sleep(max(0, due - loop.time()))
            if not word:
                return writer.close()
            writer.write(word)

    speaking = asyncio.ensure_future(speak())
    while word := await reader.read(1 << 18):
        words.put_nowait((loop.time() + delay, word))
    words.put_nowait((loop.time() + delay, b""))
    await speaking


async def accept(reader, writer):
    from_server, to_server = await asyncio.open_unix_connection(target)
    await asyncio.gather(
        pass_on(reader, to_server), pass_on(from_server, writer), return_exceptions=True
    )


async def main():
    server = await asyncio.start_unix_server(accept, socket)
    await server.serve_forever()


asyncio.run(main())
