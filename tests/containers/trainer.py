"""A trainer in a container: takes epoch 0 and prints a line of JSON for each batch, then one that
says whether they lay in the daemon's memory. Its one argument is a pause after each, in ms."""
import hashlib
import json
import pathlib
import sys
import time

import batchwright

connection = batchwright.connect(timeout=5)
for batch in connection.feed("train").epoch(0):
    digest = hashlib.sha256(batch["features"].tobytes())
    print(json.dumps({"index": batch.index, "ordinals": batch.ordinals.tolist(),
                      "digest": digest.hexdigest()}), flush=True)
    mapped = "memfd:batchwright" in pathlib.Path("/proc/self/maps").read_text()
    time.sleep(float(sys.argv[1]) / 1000)
print(json.dumps({"mapped": mapped}), flush=True)
