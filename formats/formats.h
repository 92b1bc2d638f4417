#pragma once

// Front door of the room: bytes on disk and on the wire, and the words for what goes wrong.
// Values, no threads, no I/O. Layouts byte by byte: README.md.

#include "formats/batch.h"                  // one finished batch
#include "formats/bytes/bytes_of.h"         // the bytes of texts and messages
#include "formats/bytes/checksum.h"         // CRC-32C
#include "formats/bytes/hash.h"             // FNV-1a and SplitMix64, of plans and fingerprints
#include "formats/bytes/journal_records.h"  // what a queue's journal is made of
#include "formats/bytes/random.h"           // the generator of plans and of augmentation
#include "formats/c_border.h"               // where a C ABI ends errors, and reads options
#include "formats/categories.h"             // numbers without a name
#include "formats/caught.h"                 // exceptions as errors
#include "formats/control.h"                // messages between client and daemon
#include "formats/ids.h"                    // numbers that must not be swapped, fingerprints
#include "formats/kernel/ask_for_memory.h"  // whether the system has some, and heap that is free
#include "formats/kernel/descriptor.h"      // an open file's owner
#include "formats/kernel/exit_code.h"       // what a program ends with
#include "formats/kernel/file_lock.h"       // a lock that ends with its process
#include "formats/kernel/limits.h"          // limits of the process, and room for threads
#include "formats/kernel/line_stream.h"     // lines for a stream that may not be read
#include "formats/kernel/mutex.h"           // a mutex that clang checks
#include "formats/kernel/socket_path.h"     // files of Unix sockets, and their access rights
#include "formats/kernel/socket_send.h"     // bytes and a descriptor for another process
#include "formats/kernel/start_thread.h"    // a thread, if there is one to spare
#include "formats/numbers.h"                // a number as one element of a tensor
#include "formats/record.h"                 // one stored sequence
#include "formats/result.h"                 // Result, Error, ErrorCode
#include "formats/schema.h"                 // what a dataset says of itself
#include "formats/share.h"                  // which batches of a step are a subscription's
#include "formats/terms.h"           // what decides which batches come, and what of it has changed
#include "formats/text/curve_key.h"  // the length of a key as people write it
#include "formats/text/nearest.h"    // the word that a misspelt one is nearest to
#include "formats/text/printable.h"  // keys in messages of one line
#include "formats/text/real_number.h"   // numbers with a fraction
#include "formats/text/schemes.h"       // how addresses of sockets begin
#include "formats/text/severity.h"      // how much a line of the log matters
#include "formats/text/split.h"         // parts of a list, lines, words
#include "formats/text/text_file.h"     // a file as a text
#include "formats/text/utf8.h"          // names as JSON may hold them
#include "formats/text/whole_number.h"  // numbers that people write
