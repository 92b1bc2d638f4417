/* Compiled as pedantic C11, so that the header stays usable from C. */
#include <batchwright/client.h>

int header_is_c11(void);
int header_is_c11(void) {
  const bw_connect_options connecting = BW_CONNECT_OPTIONS_INIT;
  const bw_subscribe_options subscribing = BW_SUBSCRIBE_OPTIONS_INIT;
  return connecting.timeout_ms > 0 && subscribing.window > 0 && subscribing.rank == BW_AUTO;
}
