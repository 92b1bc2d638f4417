"""Other systems that carry what is made to a trainer, for tests/bench/live/run --peers.

    peers.py NAME SIZE MANY SECONDS

NAME is queue (multiprocessing's, of torch tensors in shared memory), ray-queue, ray-store
(references through ray's queue, bytes in its object store), transferqueue (its own storage) or
reverb. One producer, a process of its own, gives items of SIZE bytes, MANY at a time where the
system can, as fast as it is let; this process takes them. Prints {"version", "rate"}: items a second.
"""

import importlib.metadata
import json
import multiprocessing
import sys
import time

AHEAD = 16  # batches of MANY items that may wait
WARM = 1.0  # seconds that are not counted


def measure(take, seconds):
    """Items a second that `take`, which returns how many it took, is given."""
    end = time.monotonic() + WARM
    while time.monotonic() < end:
        take()
    start, items = time.monotonic(), 0
    while time.monotonic() - start < seconds:
        items += take()
    return items / (time.monotonic() - start)


def put_tensors(queue, size, many):
    import torch
    while True:
        queue.put(torch.full((many, size), 1, dtype=torch.uint8))


def queue(size, many, seconds):
    """A tensor of MANY items each, which is one object of shared memory."""
    import torch
    import torch.multiprocessing
    torch.multiprocessing.set_sharing_strategy("file_system")
    ahead = torch.multiprocessing.get_context("fork").Queue(AHEAD)
    producer = multiprocessing.get_context("fork").Process(target=put_tensors,
                                                           args=(ahead, size, many), daemon=True)
    producer.start()
    rate = measure(lambda: len(ahead.get()), seconds)
    producer.kill()
    producer.join()
    return importlib.metadata.version("torch"), rate


def start_ray():
    import ray
    ray.init(num_cpus=16, include_dashboard=False, log_to_driver=False, logging_level="error",
             object_store_memory=2 << 30)
    return ray


def through_ray(size, many, seconds, by_reference):
    ray = start_ray()
    from ray.util.queue import Queue
    ahead = Queue(maxsize=AHEAD)

    @ray.remote
    def produce(queue):
        import numpy
        while True:
            items = numpy.ones((many, size), numpy.uint8)
            queue.put([ray.put(items)] if by_reference else items)

    produced = produce.remote(ahead)

    def take():
        got = ahead.get()
        return len(ray.get(got[0]) if by_reference else got)

    rate = measure(take, seconds)
    ray.cancel(produced, force=True)
    ray.shutdown()
    return ray.__version__, rate


def ray_queue(size, many, seconds):
    return through_ray(size, many, seconds, by_reference=False)


def ray_store(size, many, seconds):
    return through_ray(size, many, seconds, by_reference=True)


def transferqueue(size, many, seconds):
    ray = start_ray()
    import transfer_queue
    transfer_queue.init()
    from ray.util.queue import Queue
    there = Queue(maxsize=AHEAD)  # since it holds no producer back itself

    @ray.remote
    def produce(there):
        import torch
        import transfer_queue
        from tensordict import TensorDict
        transfer_queue.init()
        client = transfer_queue.get_client()
        while True:
            items = torch.full((many, size), 1, dtype=torch.uint8)
            client.put(TensorDict({"values": items}, batch_size=many), partition_id="train")
            there.put(1)

    produced = produce.remote(there)
    client = transfer_queue.get_client()

    def take():
        there.get()
        meta = client.get_meta(["values"], many, "train", task_name="train")
        got = len(client.get_data(meta)["values"])
        client.clear_samples(meta)
        return got

    rate = measure(take, seconds)
    ray.cancel(produced, force=True)
    transfer_queue.close()
    ray.shutdown()
    return importlib.metadata.version("transferqueue"), rate


def fill_reverb(port, size):
    import numpy
    import reverb
    client = reverb.Client(f"localhost:{port}")
    item = numpy.ones(size, numpy.uint8)
    with client.trajectory_writer(num_keep_alive_refs=1) as writer:
        while True:
            writer.append({"values": item})
            writer.create_item("train", 1.0, {"values": writer.history["values"][-1:]})
            writer.flush(block_until_num_items=AHEAD)


def through_reverb(size, many, seconds):
    import reverb
    server = reverb.Server([reverb.Table.queue("train", max_size=AHEAD * many)], port=None)
    producer = multiprocessing.get_context("spawn").Process(target=fill_reverb,
                                                            args=(server.port, size), daemon=True)
    producer.start()
    sampler = reverb.Client(f"localhost:{server.port}").sample("train", num_samples=1 << 40,
                                                               emit_timesteps=False)
    rate = measure(lambda: 1 if next(sampler) is not None else 0, seconds)
    producer.kill()
    return importlib.metadata.version("dm-reverb"), rate


PEERS = {"queue": queue, "ray-queue": ray_queue, "ray-store": ray_store,
         "transferqueue": transferqueue, "reverb": through_reverb}


if __name__ == "__main__":
    version, rate = PEERS[sys.argv[1]](*map(int, sys.argv[2:]))
    print(json.dumps({"version": version, "rate": rate}), flush=True)
