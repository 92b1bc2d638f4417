#pragma once

// Front door of the room: what every other room stands on. Errors, texts, numbers, the kernel's
// handles. It knows no format and no other room.

#include "formats/base/as_result.h"            // exceptions as errors
#include "formats/base/bytes/bytes_of.h"       // the bytes of texts and messages
#include "formats/base/bytes/checksum.h"       // CRC-32C
#include "formats/base/bytes/hash.h"           // FNV-1a and SplitMix64, of plans and fingerprints
#include "formats/base/bytes/narrow_float.h"   // float16 and bfloat16 of a float32
#include "formats/base/bytes/random.h"         // the generator of plans and of augmentation
#include "formats/base/kernel/descriptor.h"    // an open file's owner
#include "formats/base/kernel/exit_code.h"     // what a program ends with
#include "formats/base/kernel/file_lock.h"     // a lock that ends with its process
#include "formats/base/kernel/limits.h"        // limits of the process, and room for threads
#include "formats/base/kernel/line_stream.h"   // lines for a stream that may not be read
#include "formats/base/kernel/mutex.h"         // a mutex that clang checks
#include "formats/base/kernel/probe_memory.h"  // whether the system has some, and heap that is free
#include "formats/base/kernel/socket_path.h"   // files of Unix sockets, and their access rights
#include "formats/base/kernel/socket_send.h"   // bytes and a descriptor for another process
#include "formats/base/kernel/start_thread.h"  // a thread, if there is one to spare
#include "formats/base/kernel/sync_folder.h"   // names of new files on the disk
#include "formats/base/must.h"                 // conditions that hold in a release, too
#include "formats/base/result.h"               // Result, Error, ErrorCode
#include "formats/base/text/curve_key.h"       // the length of a key as people write it
#include "formats/base/text/nearest.h"         // the word that a misspelt one is nearest to
#include "formats/base/text/printable.h"       // keys and values in messages
#include "formats/base/text/real_number.h"     // numbers with a fraction
#include "formats/base/text/schemes.h"         // how addresses of sockets begin
#include "formats/base/text/severity.h"        // how much a line of the log matters
#include "formats/base/text/split.h"           // parts of a list, lines, words
#include "formats/base/text/text_file.h"       // a file as a text
#include "formats/base/text/utf8.h"            // names as JSON may hold them
#include "formats/base/text/whole_number.h"    // numbers that people write
