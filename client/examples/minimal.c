/* Takes one epoch of a feed and says what came: the least a trainer in C does.
 *     minimal ipc:///run/batchwright/batchwright.sock train */
#include <batchwright/client.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int fail(const char* call) {
  fprintf(stderr, "%s: %s\n", call, bw_error_message());
  return 1;
}

static void show(const bw_batch* batch) {
  const bw_batch_header* header = bw_batch_get_header(batch);
  const bw_tensor* tensor = bw_batch_tensor(batch, 0);
  printf("step %" PRIu64 ": %" PRIu32 " sequences, %" PRIu64 " frames, \"%s\" %s [", header->step,
         header->sequences, header->frames, tensor->name, bw_dtype_name(tensor->dtype));
  for (uint32_t i = 0; i < tensor->ndim; ++i)
    printf(i ? ", %" PRIu64 : "%" PRIu64, tensor->shape[i]);
  printf("]\n");
}

int main(int argc, char** argv) {
  bw_connection* connection = NULL;
  bw_subscription* subscription = NULL;
  bw_batch* batch = NULL;
  bw_status status = BW_OK;
  bw_subscribe_options options = BW_SUBSCRIBE_OPTIONS_INIT;
  const int help = argc > 1 && strcmp(argv[1], "--help") == 0;
  if (help || argc != 3 || argv[1][0] == '-') {
    fprintf(help ? stdout : stderr, "usage: minimal ENDPOINT FEED\n");
    return help ? 0 : 2;
  }
  options.feed = argv[2];
  options.epochs = 1;
  if (bw_connect(argv[1], NULL, &connection) != BW_OK) return fail("bw_connect");
  if (bw_subscribe(connection, &options, &subscription) != BW_OK) return fail("bw_subscribe");
  while ((status = bw_next(subscription, 60000, &batch, NULL)) != BW_END) {
    if (status > BW_OK) return fail("bw_next");
    if (status == BW_EPOCH_END) continue;
    show(batch);
    bw_release(batch);
  }
  bw_unsubscribe(subscription);
  bw_close(connection);
  return 0;
}
